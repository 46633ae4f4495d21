/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A batch job whose demand is a square wave: `wave BUSY_MS PERIOD_MS SECONDS [wall] [random]` uses
 * BUSY_MS of CPU time at the start of every PERIOD_MS and prints the share of its demand that it got.
 * The periods are absolute: a burst that was held up does not move the next one. With wall a burst ends
 * after BUSY_MS, however little of them it was on a CPU; with random PERIOD_MS is the mean of
 * exponential gaps.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    bool is_wall = false;
    bool is_random = false;
    for (int i = 4; i < argc; i++) {
        is_wall |= strcmp(argv[i], "wall") == 0;
        is_random |= strcmp(argv[i], "random") == 0;
    }
    if (argc < 4 || argc != 4 + is_wall + is_random) {
        fprintf(stderr, "usage: wave BUSY_MS PERIOD_MS SECONDS [wall] [random]\n");
        return 1;
    }
    clockid_t clock = is_wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID;
    int64_t busy = (int64_t)(atof(argv[1]) * 1e6);
    double period = atof(argv[2]) * 1e6;
    int64_t start = now_ns(CLOCK_MONOTONIC);
    int64_t end = start + (int64_t)(atof(argv[3]) * 1e9);
    int64_t wanted = 0;
    int64_t used_before = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    srand48(1);
    for (int64_t at = start; at < end;
         at += (int64_t)(is_random ? -period * log(1.0 - drand48()) : period)) {
        sleep_until(at);
        wanted += busy;
        int64_t from = now_ns(clock);
        while (now_ns(clock) - from < busy && now_ns(CLOCK_MONOTONIC) < end) {
        }
    }
    printf("%.3f\n",
           (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - used_before) / (double)wanted);
    return 0;
}
