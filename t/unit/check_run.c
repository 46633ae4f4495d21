/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Runs repeated over the same connections, against a server in this program that answers
 * every line with END: rates and lengths given with each, fresh connections, connections
 * that were lost or left behind, an end before the time.
 */
#include "loadgen/run/run.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check_main.h"
#include "loadgen/run/run_state.h"

#define CLIENTS_MAX 64

static struct {
    pthread_t id;
    int listener;
    char address[64];
    atomic_uint accepted, lines;
    atomic_bool is_mute, hangs_up, ends; /* it reads and says nothing; it closes all */
} server;

static void
answer(int fd)
{
    char in[4096], out[4096 * 5];
    size_t len = 0;
    ssize_t n = recv(fd, in, sizeof in, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++) {
        if (in[i] == '\n') {
            atomic_fetch_add(&server.lines, 1);
            memcpy(out + len, "END\r\n", 5);
            len += 5;
        }
    }
    if (len > 0 && !atomic_load(&server.is_mute)) {
        ssize_t sent = send(fd, out, len, MSG_NOSIGNAL);
        (void)sent; /* the client may be gone */
    }
}

static void *
serve(void *arg)
{
    struct pollfd fds[CLIENTS_MAX + 1] = {{server.listener, POLLIN, 0}};
    nfds_t count = 1;
    while (!atomic_load(&server.ends)) {
        poll(fds, count, 10);
        if (atomic_load(&server.hangs_up)) {
            while (count > 1) {
                close(fds[--count].fd);
            }
            atomic_store(&server.hangs_up, false);
            continue;
        }
        for (nfds_t i = 1; i < count; i++) {
            if (fds[i].revents != 0) {
                char byte;
                if (recv(fds[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
                    close(fds[i].fd);
                    fds[i--] = fds[--count];
                } else {
                    answer(fds[i].fd);
                }
            }
        }
        if ((fds[0].revents & POLLIN) != 0 && count <= CLIENTS_MAX) {
            int fd = accept(server.listener, NULL, NULL);
            atomic_fetch_add(&server.accepted, fd != -1);
            fds[count] = (struct pollfd){fd, POLLIN, 0};
            count += fd != -1;
        }
    }
    while (count > 1) {
        close(fds[--count].fd);
    }
    return arg;
}

static void
start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    memset(&server, 0, sizeof server);
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert(bind(server.listener, (struct sockaddr *)&at, sizeof at) == 0);
    ck_assert(listen(server.listener, CLIENTS_MAX) == 0);
    ck_assert(getsockname(server.listener, (struct sockaddr *)&at, &len) == 0);
    snprintf(server.address, sizeof server.address, "127.0.0.1:%u", ntohs(at.sin_port));
    ck_assert(pthread_create(&server.id, NULL, serve, NULL) == 0);
}

static void
stop_server(void)
{
    atomic_store(&server.ends, true);
    ck_assert(pthread_join(server.id, NULL) == 0);
    close(server.listener);
}

static struct options options;
static struct target target;
static struct run *run;
static struct result result;

/* Two classes, three and one connections: 2000 a second, and closed loop. */
static void
open_run(run_tick *tick)
{
    static char text[][64] = {"mcload",
                              "-s",
                              "",
                              "--noload",
                              "--records=100",
                              "--time=0.2",
                              "--class=a:{-q 2000 -T 3}",
                              "--class=b:{}",
                              "--timeout=60"};
    static char *argv[sizeof text / sizeof text[0] + 1];
    char err[256];
    start_server();
    snprintf(text[2], sizeof text[2], "%s", server.address);
    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++) {
        argv[i] = text[i];
    }
    ck_assert(options_parse(&options, sizeof text / sizeof text[0], argv, stderr));
    ck_assert(target_resolve(&target, server.address, TRANSPORT_TCP, err, sizeof err));
    struct run_conf conf = {
        .options = &options, .targets = &target, .err = stderr, .tick = tick};
    ck_assert_int_eq(run_open(&run, &conf), EXIT_VALID);
    ck_assert_uint_eq(run_loaded(run), 0);
}

static void
close_run(void)
{
    run_close(&run);
    ck_assert_ptr_null(run);
    run_close(&run);
    options_fini(&options);
    stop_server();
}

static uint64_t
sent_by(unsigned c)
{
    return ctr_get(&result.classes[c].total.sent);
}

static uint64_t
offered_by(unsigned c)
{
    return ctr_get(&result.classes[c].total.offered);
}

TEST(test_again_and_again)
{
    bool are_answered =
        true; /* in time; where the machine stands still behind a window some are not */
    open_run(NULL);
    for (unsigned i = 0; i < 3; i++) {
        unsigned lines = atomic_load(&server.lines);
        ck_assert_int_eq(run_once(run, &(struct run_spec){0}, &result), EXIT_VALID);
        ck_assert_uint_eq(result.classes_len, 2);
        ck_assert_str_eq(result.classes[0].name, "a");
        ck_assert_double_eq(result.classes[0].qps, 2000);
        ck_assert(result.classes[0].is_open && !result.classes[1].is_open);
        ck_assert_double_eq(result.elapsed_s, 0.2);
        /* How many of them are sent is up to who else wants the CPUs. */
        ck_assert_uint_gt(offered_by(0), 300);
        ck_assert_uint_lt(offered_by(0), 500);
        /* Nothing is left over from the run before; a request in the making at the very end
         * is outside of the window, one on each connection at most. */
        uint64_t sent = ctr_get(&result.total.sent);
        ck_assert_uint_eq(sent, sent_by(0) + sent_by(1));
        are_answered = are_answered && counters_sum(result.total.unanswered) == 0;
        ck_assert(!are_answered || sent <= atomic_load(&server.lines) - lines);
        ck_assert(!are_answered || atomic_load(&server.lines) - lines <= sent + 4);
        ck_assert_uint_le(ctr_get(&result.total.good), sent);
        ck_assert_uint_eq(counters_error_sum(&result.total), 0);
        ck_assert_uint_eq(result.threads, 4);
        result_fini(&result);
    }
    ck_assert(!are_answered || atomic_load(&server.accepted) == 4);
    ck_assert_int_eq(run_once(run, &(struct run_spec){.is_fresh = true}, &result), 0);
    result_fini(&result);
    ck_assert(!are_answered || atomic_load(&server.accepted) == 8);
    close_run();
}

TEST(test_rates_and_lengths)
{
    open_run(NULL);
    const double rates[] = {0, 500};
    struct run_spec spec = {.rates = rates, .time_s = 0.4, .warmup_s = 0.1};
    ck_assert_int_eq(run_once(run, &spec, &result), EXIT_VALID);
    ck_assert(!result.classes[0].is_open && result.classes[1].is_open);
    ck_assert_double_eq(result.classes[1].qps, 500);
    ck_assert_double_eq(result.elapsed_s, 0.4);
    ck_assert_uint_gt(offered_by(1), 120);
    ck_assert_uint_lt(offered_by(1), 280);
    ck_assert_double_eq_tol((double)(run_window(run)->end - run_window(run)->start), 4e8,
                            1);
    ck_assert_double_eq_tol((double)(run_window(run)->start - run_window(run)->begin),
                            1e8, 1);
    result_fini(&result);
    /* At a time that another clock has chosen, where the threads were ready by then. */
    nsec_t wait = 1500 * NSEC_PER_MSEC;
    do {
        spec = (struct run_spec){.begin = clock_now() + wait};
        ck_assert_int_eq(run_once(run, &spec, &result), EXIT_VALID);
        ck_assert_uint_ge(run_window(run)->begin, spec.begin);
        result_fini(&result);
        wait *= 2;
    } while (run_window(run)->begin != spec.begin && wait < 60 * NSEC_PER_SEC);
    ck_assert_uint_eq(run_window(run)->begin, spec.begin);
    close_run();
}

/* As soon as the closed loop has had an answer; of a server that gives none, as soon as it has sent
 * something. What a fixed time is enough for is up to who else wants the CPUs. */
static bool
stop_when_it_runs(void *arg, const struct run *r, nsec_t now)
{
    struct counters sum;
    ck_assert_ptr_null(arg);
    ck_assert_uint_gt(now, run_window(r)->start);
    counters_init(&sum);
    run_sum(r, 1, &sum);
    bool runs = ctr_get(atomic_load(&server.is_mute) ? &sum.sent : &sum.good) > 0;
    counters_fini(&sum);
    return !runs;
}

static void
run_briefly(void)
{
    const struct run_spec spec = {.time_s = 60, .tick_length = 20 * NSEC_PER_MSEC};
    ck_assert_int_eq(run_once(run, &spec, &result), EXIT_VALID);
    ck_assert_double_lt(result.elapsed_s, 30);
}

TEST(test_connections_are_mended)
{
    open_run(stop_when_it_runs);
    run_briefly();
    result_fini(&result);
    /* Left with requests that are answered too late, or never. */
    atomic_store(&server.is_mute, true);
    run_briefly();
    ck_assert_uint_eq(counters_sum(result.classes[1].total.unanswered), 1);
    ck_assert(!result.is_valid);
    result_fini(&result);
    atomic_store(&server.is_mute, false);
    run_briefly();
    ck_assert_uint_eq(counters_error_sum(&result.total), 0);
    ck_assert_uint_gt(ctr_get(&result.total.good), 0);
    result_fini(&result);
    /* A connection that the server has closed between two runs is noticed in the next. */
    atomic_store(&server.hangs_up, true);
    while (atomic_load(&server.hangs_up)) {
        sched_yield();
    }
    run_briefly();
    ck_assert_uint_gt(ctr_get(&result.total.good), 0);
    result_fini(&result);
    close_run();
}

/* What is shown in its order lasts as long as the whole, of each class, too. */
static void
expect_series_to_add_up(void)
{
    for (unsigned i = 0; i <= result.classes_len; i++) {
        const struct result *r = i < result.classes_len ? &result.classes[i] : &result;
        const struct series *s = r->series;
        ck_assert_double_eq((double)(s->now.to - s->start) / 1e9, r->elapsed_s);
    }
}

TEST(test_early_end)
{
    open_run(stop_when_it_runs);
    ck_assert_int_eq(run_once(run, &(struct run_spec){.time_s = 60}, &result),
                     EXIT_VALID);
    expect_series_to_add_up();
    ck_assert_double_lt(result.elapsed_s, 30);
    ck_assert_double_gt(result.elapsed_s, 0);
    ck_assert(!result.was_interrupted);
    ck_assert(result.checks[CHECK_COMPLETE].is_good);
    result_fini(&result);
    raise(SIGTERM); /* it waits until a run asks for it */
    ck_assert_int_eq(run_once(run, &(struct run_spec){.time_s = 60}, &result),
                     EXIT_VALID);
    ck_assert(result.was_interrupted);
    expect_series_to_add_up();
    ck_assert(!result.checks[CHECK_COMPLETE].is_good);
    ck_assert_double_lt(result.elapsed_s, 30);
    result_fini(&result);
    close_run();
}

/* ---- until ------------------------------------------------------------------------- */

TEST(test_until_asks_each_class)
{
    struct until u;
    struct counters t[2];
    struct result classes[2] = {{.is_valid = true}};
    struct result r = {.until = &u, .classes = classes, .classes_len = 2};
    ck_assert_ptr_null(until_parse(&u, "n:3"));
    for (unsigned i = 0; i < 2; i++) {
        counters_init(&t[i]);
        classes[i].series = series_create(0, false);
        series_start(classes[i].series, NSEC_PER_SEC);
    }
    ck_assert(!stopping_is_met(&r));
    for (unsigned i = 0; i < 2; i++) {
        const struct counters *of_class = &t[i];
        ctr_add(&t[i].done[0], 3);
        series_look(classes[i].series, &of_class, 1, NSEC_PER_SEC + 50 * NSEC_PER_MSEC);
        ck_assert_int_eq(stopping_is_met(&r), i == 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        series_destroy(&classes[i].series);
        counters_fini(&t[i]);
    }
}
