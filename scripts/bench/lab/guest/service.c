/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A service whose requests come by a clock: `service fixed|random WORK_US GAP_US SECONDS [SEED]`
 * takes WORK_US of CPU time for each request, one after the other, GAP_US after the one before it;
 * random: both are means of exponential laws, which draw the same for the same seed (1). Prints how
 * long after its time a request began, and how long after it its work was done.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define NS_PER_US 1e3
#define NS_PER_S 1e9

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

static void
work(int64_t ns)
{
    int64_t end = now_ns(CLOCK_PROCESS_CPUTIME_ID) + ns;
    while (now_ns(CLOCK_PROCESS_CPUTIME_ID) < end) {
    }
}

static int64_t
draw(double mean, bool is_random)
{
    return (int64_t)(is_random ? -mean * log(1 - drand48()) : mean);
}

static int
by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void
print(const char *name, int64_t *ns, size_t count)
{
    qsort(ns, count, sizeof *ns, by_value);
    printf("\"%s\": {", name);
    for (unsigned i = 0; i < 3; i++) {
        static const unsigned percents[] = {50, 95, 99};
        printf("\"p%u\": %.1f, ", percents[i],
               (double)ns[count * percents[i] / 100] / NS_PER_US);
    }
    printf("\"max\": %.1f}", (double)ns[count - 1] / NS_PER_US);
}

int
main(int argc, char **argv)
{
    if (argc < 5 || argc > 6 || atof(argv[2]) < 0 || atof(argv[3]) <= 0 ||
        atof(argv[4]) <= 0) {
        fprintf(stderr, "usage: service fixed|random WORK_US GAP_US SECONDS [SEED]\n");
        return 1;
    }
    bool is_random = strcmp(argv[1], "random") == 0;
    double work_ns = atof(argv[2]) * NS_PER_US, gap_ns = atof(argv[3]) * NS_PER_US;
    int64_t start = now_ns(CLOCK_MONOTONIC), at = start;
    int64_t end = start + (int64_t)(atof(argv[4]) * NS_PER_S);
    size_t most = (size_t)((double)(end - start) / gap_ns * 2) + 100, count = 0;
    int64_t *begun = calloc(most, sizeof *begun), *done = calloc(most, sizeof *done);
    if (begun == NULL || done == NULL || prctl(PR_SET_TIMERSLACK, 1) != 0) {
        perror("service");
        return 1;
    }
    srand48(argc == 6 ? atol(argv[5]) : 1);
    while ((at += draw(gap_ns, is_random)) < end && now_ns(CLOCK_MONOTONIC) < end &&
           count < most) {
        sleep_until(at);
        begun[count] = now_ns(CLOCK_MONOTONIC) - at;
        work(draw(work_ns, is_random));
        done[count++] = now_ns(CLOCK_MONOTONIC) - at;
    }
    if (count == 0) {
        fprintf(stderr, "service: no request in that time\n");
        return 1;
    }
    printf("{\"requests\": %zu, \"cpu_s\": %.4f, ", count,
           (double)now_ns(CLOCK_PROCESS_CPUTIME_ID) / NS_PER_S);
    print("begun_us", begun, count);
    printf(", ");
    print("done_us", done, count);
    printf("}\n");
    return 0;
}
