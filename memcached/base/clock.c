/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include "base/changes.h"
#include "base/must.h"

/* Written by clock_init before any other thread starts. */
static nsec_t started_mono;
static int64_t started_wall;
static int64_t started_rel = CLOCK_REL_START;

/* The test shift; relaxed, because nothing else is published with it. */
static _Atomic int64_t shift_s;
static _Atomic uint64_t paused_at; /* 0: running, else the monotonic time of the pause */

static int64_t
wall_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec;
}

static inline nsec_t
read_clock(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

nsec_t
clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void
clock_cond_init(pthread_cond_t *changed)
{
    pthread_condattr_t attr;
    PTHREAD_OK(pthread_condattr_init(&attr));
    PTHREAD_OK(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    PTHREAD_OK(pthread_cond_init(changed, &attr));
    PTHREAD_OK(pthread_condattr_destroy(&attr));
}

bool
clock_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex, nsec_t until)
{
    const struct timespec at = {(time_t)(until / NSEC_PER_SEC),
                                (long)(until % NSEC_PER_SEC)};
    int rc = pthread_cond_timedwait(changed, mutex, &at);
    must(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

nsec_t
clock_of_thread(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t
clock_wall(void)
{
    return wall_seconds() + atomic_load_explicit(&shift_s, memory_order_relaxed);
}

int64_t
clock_wall_offset(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * (int64_t)NSEC_PER_SEC + ts.tv_nsec - (int64_t)clock_now();
}

double
clock_wall_of(nsec_t when)
{
    return (double)((int64_t)when + clock_wall_offset()) / (double)NSEC_PER_SEC;
}

void
clock_init(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    nsec_t now = clock_now();
    nsec_t into_second = (nsec_t)ts.tv_nsec;
    started_mono = now > into_second ? now - into_second : 0;
    started_wall = ts.tv_sec - CLOCK_REL_START;
    started_rel = CLOCK_REL_START;
}

void
clock_continue(int64_t started, uint32_t least)
{
    int64_t wall = started_wall + started_rel;
    int64_t rel = wall - started;
    rel = rel < least ? least : rel > UINT32_MAX ? UINT32_MAX : rel;
    started_wall = wall - rel;
    started_rel = rel;
}

uint32_t
clock_rel_since(nsec_t now, nsec_t *since)
{
    nsec_t paused = atomic_load_explicit(&paused_at, memory_order_relaxed);
    nsec_t at = paused != 0 ? paused : now;
    nsec_t elapsed = at > started_mono ? at - started_mono : 0;
    *since = now - elapsed % NSEC_PER_SEC;
    return (uint32_t)(started_rel + (int64_t)(elapsed / NSEC_PER_SEC) +
                      atomic_load_explicit(&shift_s, memory_order_relaxed));
}

uint32_t
clock_rel(nsec_t now)
{
    nsec_t since;
    return clock_rel_since(now, &since);
}

int64_t
clock_started(void)
{
    return started_wall;
}

void
clock_shift(int32_t seconds)
{
    atomic_fetch_add_explicit(&shift_s, seconds, memory_order_relaxed);
    changes_note();
}

void
clock_pause(void)
{
    nsec_t running = 0;
    atomic_compare_exchange_strong(&paused_at, &running, clock_now());
    changes_note();
}

void
clock_resume(void)
{
    nsec_t paused = atomic_exchange(&paused_at, 0);
    if (paused != 0) {
        clock_shift(-(int32_t)((clock_now() - paused) / NSEC_PER_SEC)); /* and notes it */
    }
}
