/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the antagonists of scripts/lab share: they print "ready", work until SECONDS have passed or
 * SIGTERM comes, then print "WORK SECONDS CPU_SECONDS" and what else says that they did what they are for.
 */
#pragma once

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LINE_BYTES = 64 };

static volatile sig_atomic_t is_ended;
static int64_t began_ns;
static int64_t began_cpu_ns;
static int64_t ends_ns;
static int64_t took_ns, took_cpu_ns; /* once it has stopped */

static int64_t
now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void
on_term(int number)
{
    (void)number;
    is_ended = 1;
}

static inline _Noreturn void
fail(const char *what)
{
    perror(what);
    exit(1);
}

static _Noreturn void
usage(const char *words)
{
    fprintf(stderr, "usage: %s\n", words);
    exit(2);
}

static void
begin(const char *seconds)
{
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    puts("ready");
    fflush(stdout);
    began_ns = now_ns(CLOCK_MONOTONIC);
    began_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    ends_ns = began_ns + (int64_t)(atof(seconds) * 1e9);
}

static bool
goes_on(void)
{
    return !is_ended && now_ns(CLOCK_MONOTONIC) < ends_ns;
}

/* What comes after it is not work. */
static void
stop(void)
{
    took_ns = now_ns(CLOCK_MONOTONIC) - began_ns;
    took_cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - began_cpu_ns;
}

static void
finish(uint64_t work, const char *form, ...)
{
    if (took_ns == 0) {
        stop();
    }
    printf("%llu %.3f %.3f ", (unsigned long long)work, took_ns / 1e9, took_cpu_ns / 1e9);
    va_list args;
    va_start(args, form);
    vprintf(form, args);
    va_end(args);
    putchar('\n');
}
