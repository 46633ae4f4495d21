/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A quota of CPU time for programs at real-time priority, of which kernels without
 * CONFIG_RT_GROUP_SCHED have none: `quota PERIOD_MS {PERCENT PID[,PID]...}...` looks each millisecond
 * what the programs of a group used since the period began, and stops the first one until the next
 * period when it is more than PERCENT of a period. Ends when a program does.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GROUPS_MOST 4
#define MEMBERS_MOST 4
#define STEP_NS INT64_C(1000000)

struct group {
    int64_t quota_ns, before_ns; /* before_ns: used when the period began */
    clockid_t clocks[MEMBERS_MOST];
    unsigned count;
    pid_t stops;
    bool is_stopped;
};

static int64_t
now_ns(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) != 0) {
        exit(0); /* the program has ended */
    }
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t
used_ns(const struct group *g)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < g->count; i++) {
        sum += now_ns(g->clocks[i]);
    }
    return sum;
}

static bool
add_members(struct group *g, char *pids)
{
    for (g->stops = atoi(pids); *pids != '\0' && g->count < MEMBERS_MOST;
         pids += *pids == ',') {
        if (clock_getcpuclockid((pid_t)strtol(pids, &pids, 10), &g->clocks[g->count++]) !=
            0) {
            return false;
        }
    }
    return *pids == '\0' && g->stops > 0;
}

int
main(int argc, char **argv)
{
    struct group groups[GROUPS_MOST] = {{0}};
    unsigned count = (unsigned)(argc - 2) / 2;
    int64_t period_ns = argc > 1 ? atoi(argv[1]) * INT64_C(1000000) : 0;
    struct sched_param highest = {.sched_priority = 99};
    bool is_right = argc >= 4 && argc % 2 == 0 && count <= GROUPS_MOST && period_ns > 0;
    for (unsigned i = 0; is_right && i < count; i++) {
        groups[i].quota_ns = period_ns * atoi(argv[2 + 2 * i]) / 100;
        is_right = add_members(&groups[i], argv[3 + 2 * i]);
    }
    if (!is_right || sched_setscheduler(0, SCHED_FIFO, &highest) != 0) {
        fprintf(stderr, "usage: quota PERIOD_MS {PERCENT PID[,PID]...}... (as root)\n");
        return 1;
    }
    int64_t at = now_ns(CLOCK_MONOTONIC), begins = at;
    for (;;) {
        bool is_new = at >= begins;
        begins += is_new ? period_ns : 0;
        for (unsigned i = 0; i < count; i++) {
            struct group *g = &groups[i];
            int64_t used = used_ns(g);
            g->before_ns = is_new ? used : g->before_ns;
            bool is_over = used - g->before_ns >= g->quota_ns;
            if (is_over != g->is_stopped) {
                kill(g->stops, is_over ? SIGSTOP : SIGCONT);
                g->is_stopped = is_over;
            }
        }
        at += STEP_NS;
        struct timespec t = {at / 1000000000, at % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
    }
}
