/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A batch job whose demand is a square wave: `wave BUSY_MS PERIOD_MS SECONDS` uses BUSY_MS of
 * CPU time at the start of every PERIOD_MS and prints the share of its demand that it got.
 * The periods are absolute: a burst that was held up does not move the next one.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int64_t
now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void
sleep_until(int64_t at)
{
    struct timespec t = {at / 1000000000, at % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
    }
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: wave BUSY_MS PERIOD_MS SECONDS\n");
        return 1;
    }
    int64_t busy = (int64_t)(atof(argv[1]) * 1e6);
    int64_t period = (int64_t)(atof(argv[2]) * 1e6);
    int64_t start = now_ns(CLOCK_MONOTONIC);
    int64_t end = start + (int64_t)(atof(argv[3]) * 1e9);
    int64_t wanted = 0;
    int64_t used_before = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int64_t at = start; at < end; at += period) {
        sleep_until(at);
        wanted += busy;
        int64_t from = now_ns(CLOCK_PROCESS_CPUTIME_ID);
        while (now_ns(CLOCK_PROCESS_CPUTIME_ID) - from < busy &&
               now_ns(CLOCK_MONOTONIC) < end) {
        }
    }
    printf("%.3f\n",
           (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - used_before) / (double)wanted);
    return 0;
}
