/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into the server, moves its clocks: the wall clock alone, as if somebody had set it,
 * or both, as after a suspension. $JUMP names a file that holds a struct control, which the
 * test writes while the server runs.
 *
 * Timers at a time of the monotonic clock are set to what the kernel calls that time. What
 * sleeps on a condition is not helped: it sleeps longer after a jump.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

#include "preload.h"

struct control {
    _Atomic int64_t wall_ns, both_ns; /* added to the clocks */
};

#define NS_PER_S 1000000000

static struct control *control;

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_timerfd_settime)(int, int, const struct itimerspec *,
                                   struct itimerspec *);

__attribute__((constructor)) static void
begin(void)
{
    control = map_control("JUMP", sizeof *control, mmap);
}

static void
move(struct timespec *t, int64_t ns)
{
    int64_t sum = (int64_t)t->tv_sec * NS_PER_S + t->tv_nsec + ns;
    sum = sum < 1 ? 1 : sum;
    t->tv_sec = sum / NS_PER_S;
    t->tv_nsec = sum % NS_PER_S;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
    FIND(clock_gettime);
    int rc = real_clock_gettime(clock, now);
    if (rc == 0 && control != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC)) {
        int64_t wall = clock == CLOCK_REALTIME ? control->wall_ns : 0;
        move(now, wall + control->both_ns);
    }
    return rc;
}

int
timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
    FIND(timerfd_settime);
    struct itimerspec moved = *at;
    if ((flags & TFD_TIMER_ABSTIME) != 0 && control != NULL) {
        move(&moved.it_value, -control->both_ns);
    }
    return real_timerfd_settime(fd, flags, &moved, old);
}
