/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The process's clocks. Everything under proto/, store/ and qos/ takes the time as an
 * argument; only net/, serve's live log, main and the load generator read it here. Any thread may call.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef uint64_t nsec_t; /* nanoseconds of CLOCK_MONOTONIC */

#define NSEC_PER_SEC UINT64_C(1000000000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

/* Seconds that the relative clock shows at process start: an item stored in the first
 * second must be older than "never" (0) and "always expired" (1). */
#define CLOCK_REL_START 62

nsec_t clock_now(void);
/* The time that the calling thread has been on a CPU. */
nsec_t clock_of_thread(void);
/* A condition by clock_now's time. */
void clock_cond_init(pthread_cond_t *changed);
/* Waits for it, until then. False: it is later. */
bool clock_cond_wait(pthread_cond_t *changed, pthread_mutex_t *mutex, nsec_t until);

/* So many seconds, from 0 on. */
static inline nsec_t
clock_seconds(double seconds)
{
    return (nsec_t)(seconds * (double)NSEC_PER_SEC);
}

/* `first`, doubled so many times, `most` at most. */
static inline nsec_t
clock_doubled(nsec_t first, unsigned times, nsec_t most)
{
    while (times-- > 0 && first < most) {
        first *= 2;
    }
    return first < most ? first : most;
}

/* Wall time in seconds since 1970, shift included. */
int64_t clock_wall(void);

/* Nanoseconds that make a time of day, counted from 1970, of clock_now. Without the shift. */
int64_t clock_wall_offset(void);
/* The time of day at `when`, in seconds since 1970, to a microsecond. Without the shift. */
double clock_wall_of(nsec_t when);

/* Fixes the start of the relative clock; call once, before the first clock_rel. */
void clock_init(void);

/* Seconds of the relative clock at monotonic time `now`: CLOCK_REL_START at clock_init (or
 * what clock_continue made of it), one more whenever the wall clock of that moment came to a
 * full second, plus the shift. An absolute time is thus reached when it comes, not up to a
 * second later. */
uint32_t clock_rel(nsec_t now);
/* The same, and *since: it is the same for a second from then on, `now` being in it, unless the clock
 * is shifted, paused or resumed, which base/changes.h counts. */
uint32_t clock_rel_since(nsec_t now, nsec_t *since);

/* The relative clock goes on from another process's, which showed 0 at wall time `started`;
 * not from less than `least`, should the wall clock have been set back. After clock_init. */
void clock_continue(int64_t started, uint32_t least);

/* Wall time at which the relative clock showed 0; fixed by clock_init and clock_continue. */
int64_t clock_started(void);

/* Tests move time by command instead of sleeping: adds seconds to the relative clock and
 * to the wall clock, never to clock_now. */
void clock_shift(int32_t seconds);
/* Stops and restarts the relative clock. */
void clock_pause(void);
void clock_resume(void);
