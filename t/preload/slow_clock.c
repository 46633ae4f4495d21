/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into a server, lets its clocks go $SLOW_CLOCK times as slowly from its start on. A
 * program that counts instructions makes a server some 50 times slower, and what it decides by the
 * clock would be decided otherwise than on the machine.
 *
 * Timers and waits until a time of the monotonic clock end at what the kernel calls that time. What
 * sleeps for a time is not slowed.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#include "preload.h"

#define NS_PER_S 1000000000

static int64_t slowness;                          /* 0: not yet, or not to be */
static int64_t began[CLOCK_MONOTONIC_COARSE + 1]; /* 0: a clock that is left alone */

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_timerfd_settime)(int, int, const struct itimerspec *,
                                   struct itimerspec *);
static int (*real_sem_clockwait)(sem_t *, clockid_t, const struct timespec *);

static int64_t
ns_of(const struct timespec *t)
{
    return (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec;
}

static struct timespec
timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

__attribute__((constructor)) static void
begin(void)
{
    static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC,
                                       CLOCK_MONOTONIC_COARSE};
    const char *times = getenv("SLOW_CLOCK");
    for (unsigned i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct timespec now;
        clock_gettime(clocks[i], &now);
        began[clocks[i]] = ns_of(&now);
    }
    slowness = times != NULL ? atoi(times) : 0;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
    FIND(clock_gettime);
    int rc = real_clock_gettime(clock, now);
    if (rc == 0 && slowness > 0 && clock >= 0 && clock <= CLOCK_MONOTONIC_COARSE &&
        began[clock] != 0) {
        *now = timespec_of(began[clock] + (ns_of(now) - began[clock]) / slowness);
    }
    return rc;
}

/* Times of day are much later. */
static bool
is_monotonic(const struct timespec *at)
{
    return ns_of(at) < began[CLOCK_REALTIME];
}

/* When the kernel's monotonic clock shows what the slow one shows at that time. */
static struct timespec
real_time(const struct timespec *at)
{
    int64_t since = ns_of(at) - began[CLOCK_MONOTONIC];
    bool is_slow = slowness > 0 && since > 0 && is_monotonic(at);
    return is_slow ? timespec_of(began[CLOCK_MONOTONIC] + since * slowness) : *at;
}

int
timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
    FIND(timerfd_settime);
    struct itimerspec real = *at;
    if ((flags & TFD_TIMER_ABSTIME) != 0) {
        real.it_value = real_time(&at->it_value);
    }
    return real_timerfd_settime(fd, flags, &real, old);
}

int
sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
    FIND(sem_clockwait);
    struct timespec real = real_time(until);
    return real_sem_clockwait(sem, clock, &real);
}

/* Not by the real one: dlsym finds a version of it for other conditions. */
int
pthread_cond_timedwait(pthread_cond_t *wake, pthread_mutex_t *lock,
                       const struct timespec *until)
{
    struct timespec real = real_time(until);
    return pthread_cond_clockwait(
        wake, lock, is_monotonic(until) ? CLOCK_MONOTONIC : CLOCK_REALTIME, &real);
}
