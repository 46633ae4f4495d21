/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Busy polling: the words of the option, and what the kernel takes.
 */
#include "sock/busypoll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check_main.h"

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

TEST_LOOP(good_words_are_understood, ROWS(good))
{
    struct busypoll b = {.prefers = true};
    ck_assert_ptr_null(busypoll_parse(&b, good[_i].text));
    ck_assert_uint_eq(b.usecs, good[_i].usecs);
    ck_assert_uint_eq(b.budget, good[_i].budget);
    ck_assert(b.prefers); /* another option's */
}

static const char *const bad[] = {"",       "x",        "-1",         "50us",
                                  "50:",    "50:0",     "50:x",       ":64",
                                  "50:1:2", "50:65536", "2147483648", " 50"};

TEST_LOOP(bad_words_are_refused, ROWS(bad))
{
    struct busypoll b;
    ck_assert_msg(busypoll_parse(&b, bad[_i]) != NULL, "%s", bad[_i]);
}

static const struct busypoll wanted[] = {{.prefers = true},
                                         {.usecs = 20, .budget = 16, .prefers = true},
                                         {.usecs = 50, .budget = 8}};

/* An old kernel says that it cannot. Also the preference by itself, with a budget of its own. */
TEST_LOOP(kernel_keeps_what_is_set, ROWS(wanted))
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    int error = busypoll_apply(&wanted[_i], fd);
    ck_assert_msg(error == 0 || error == ENOTTY, "%s", strerror(error));
    close(fd);
}

/* What is no epoll descriptor, or none at all, is an errno and nothing else. */
TEST(failures_are_told)
{
    struct busypoll b = {.prefers = true};
    int fd = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(busypoll_apply(&b, fd), ENOTTY);
    close(fd);
    ck_assert_int_eq(busypoll_apply(&b, fd), EBADF);
    ck_assert_int_eq(busypoll_apply(&(struct busypoll){0}, fd), 0); /* nothing is set */
}

static const struct {
    const char *release;
    bool can;
} releases[] = {
    {"6.13.0", true}, {"6.13-rc1", true}, {"6.18.44-fc-v657", true},
    {"7.0", true},    {"6.12.9", false},  {"5.19", false},
    {"10.1", true},   {"6", false},       {"6.", false},
    {"", false},      {"x.y", false},     {"6.9999999999", false},
};

TEST_LOOP(releases_that_suspend, ROWS(releases))
{
    ck_assert_int_eq(busypoll_can_suspend(releases[_i].release), releases[_i].can);
}
