/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Busy polling: the words of the option, finding an event base's epoll descriptor, and what the
 * kernel takes.
 */
#include "sock/busypoll.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check_unit.h"

static const struct {
    const char *text;
    uint32_t usecs;
    unsigned budget;
} good[] = {
    {"0", 0, 0},
    {"50", 50, 0},
    {"50:64", 50, 64},
    {"2147483647:65535", INT32_MAX, UINT16_MAX},
};

START_TEST(good_words_are_understood)
{
    struct busypoll b = {.prefers = true};
    ck_assert_ptr_null(busypoll_parse(&b, good[_i].text));
    ck_assert_uint_eq(b.usecs, good[_i].usecs);
    ck_assert_uint_eq(b.budget, good[_i].budget);
    ck_assert(b.prefers); /* another option's */
}
END_TEST

static const char *const bad[] = {"",       "x",        "-1",         "50us",
                                  "50:",    "50:0",     "50:x",       ":64",
                                  "50:1:2", "50:65536", "2147483648", " 50"};

START_TEST(bad_words_are_refused)
{
    struct busypoll b;
    ck_assert_msg(busypoll_parse(&b, bad[_i]) != NULL, "%s", bad[_i]);
}
END_TEST

START_TEST(watched_descriptors_are_found_in_text)
{
    static const char text[] =
        "pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t1057\n"
        "tfd:        7 events:       19 data:                7  pos:0\n"
        "tfd:       12 events:       19 data:               12  pos:0\n";
    ck_assert(busypoll_watches(text, 7));
    ck_assert(busypoll_watches(text, 12));
    ck_assert(!busypoll_watches(text, 1));
    ck_assert(!busypoll_watches(text, 0));
    ck_assert(!busypoll_watches("", 7));
    ck_assert(!busypoll_watches("tfd:", 7));
}
END_TEST

static void
on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd, (void)what, (void)arg;
}

/* Among several event bases the right one is found; an old kernel says that it cannot. */
START_TEST(kernel_keeps_what_is_set)
{
    struct busypoll b = {.usecs = 50, .budget = 8};
    struct busypoll off = {0};
    struct event_base *bases[3];
    struct event *events[3];
    int fds[3];
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
        bases[i] = event_base_new();
        events[i] = event_new(bases[i], fds[i], EV_READ | EV_PERSIST, on_event, NULL);
        ck_assert_int_eq(event_add(events[i], NULL), 0);
    }
    if (strcmp(event_base_get_method(bases[0]), "epoll") == 0) {
        int error = busypoll_apply(&b, fds[1]);
        ck_assert_msg(error == 0 || error == ENOTTY, "%s", strerror(error));
    }
    ck_assert_int_eq(busypoll_apply(&b, fds[2] + 100), ENOENT);
    ck_assert_int_eq(busypoll_apply(&off, fds[2] + 100), 0);
    for (unsigned i = 0; i < 3; i++) {
        event_free(events[i]);
        event_base_free(bases[i]);
        close(fds[i]);
    }
}
END_TEST

/* Also the preference by itself, with a budget of its own. */
START_TEST(kernel_keeps_the_preference)
{
    static const struct busypoll wanted[] = {
        {.prefers = true}, {.usecs = 20, .budget = 16, .prefers = true}};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    int error = busypoll_set(&wanted[_i], fd);
    ck_assert_msg(error == 0 || error == ENOTTY, "%s", strerror(error));
    close(fd);
}
END_TEST

/* What is no epoll descriptor, or none at all, is an errno and nothing else. */
START_TEST(failures_are_told)
{
    struct busypoll b = {.prefers = true};
    int fd = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(busypoll_set(&b, fd), ENOTTY);
    close(fd);
    ck_assert_int_eq(busypoll_set(&b, fd), EBADF);
    ck_assert_int_eq(busypoll_apply(&b, 60000), ENOENT);
}
END_TEST

static const struct {
    const char *release;
    bool can;
} releases[] = {
    {"6.13.0", true}, {"6.13-rc1", true}, {"6.18.44-fc-v657", true},
    {"7.0", true},    {"6.12.9", false},  {"5.19", false},
    {"10.1", true},   {"6", false},       {"6.", false},
    {"", false},      {"x.y", false},     {"6.9999999999", false},
};

START_TEST(releases_that_suspend)
{
    ck_assert_int_eq(busypoll_can_suspend(releases[_i].release), releases[_i].can);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("busypoll");
    TCase *tc = tcase_create("busypoll");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_loop_test(tc, good_words_are_understood, 0, ROWS(good));
    tcase_add_loop_test(tc, bad_words_are_refused, 0, ROWS(bad));
    tcase_add_test(tc, watched_descriptors_are_found_in_text);
    tcase_add_test(tc, kernel_keeps_what_is_set);
    tcase_add_loop_test(tc, kernel_keeps_the_preference, 0, 2);
    tcase_add_test(tc, failures_are_told);
    tcase_add_loop_test(tc, releases_that_suspend, 0, ROWS(releases));
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
