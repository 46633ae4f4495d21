/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the kernel should be made to choose again which thread has a CPU (place/scheduling.h does
 * it).
 *
 * Why (EEVDF, Stoica and Abdel-Wahab 1995): a worker with a short slice preempts a batch job when
 * it wakes up, but only while it is eligible, that is, has had no more than its share. Right
 * behind a burst of its own it is not; that it is again the kernel notices at its next tick (4
 * ms), or when any thread wakes up on that CPU. So one does.
 *
 * When, by trial: nudges for 0.1 s when the worker waited more than wake-ups explain. Without a
 * long wait in a window of theirs a neighbour is not what it waits for; when most of the waiting
 * outlasts several of them they are of no use. After either the next trial is twice as late
 * (exponential backoff, Metcalfe and Boggs 1976); else they go on until there was no long wait
 * for a second.
 *
 * Pure; `nudge_suspects` by one thread, the rest by another, in turn.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

#define NUDGE_WAIT 0.003 /* of the time: a worker that waits less is left alone */
#define NUDGE_LATE_NS (100 * NSEC_PER_USEC) /* in a window: it was not a wake-up */
#define NUDGE_CLOSE_NS                                                                   \
    (200 * NSEC_PER_USEC)                   /* a window, when one was late not long ago */
#define NUDGE_WIDE_NS (500 * NSEC_PER_USEC) /* ... otherwise */
#define NUDGE_SOON_NS (10 * NSEC_PER_MSEC)  /* what "not long ago" means */
#define NUDGE_TRIAL_NS (100 * NSEC_PER_MSEC)
#define NUDGE_LAST_NS (1 * NSEC_PER_SEC) /* after the last late window */
#define NUDGE_OUTLAST_NS                                                                 \
    (4 * NUDGE_WIDE_NS)     /* a wait that is longer was not ended by a nudge */
#define NUDGE_OUTLASTED 0.5 /* such a part of the waiting, and nudges are of no use; */
#define NUDGE_JUDGE_NS (1 * NSEC_PER_SEC)  /* looked at at this interval */
#define NUDGE_STINT_NS (10 * NSEC_PER_SEC) /* then it is asked anew where the worker is */
#define NUDGE_FUTILE_MAX 5                 /* a trial each 32 seconds at the least */

/* Of a worker. Zero-initialised. */
struct nudge {
    /* from second to second */
    nsec_t asked_at; /* 0: never */
    uint64_t asked_wait_ns;
    unsigned futile; /* trials in a row */
    unsigned skip;   /* seconds, because of them */
    /* while it is nudged */
    nsec_t began_at;
    nsec_t late_at; /* the last late window; 0: there was none */
    uint64_t wait_ns;
    nsec_t judged_at;
    uint64_t waited;    /* since then, in all windows */
    uint64_t outlasted; /* of that, in waits that nudges did not end */
};

/* Once a second, while it is not nudged. wait_ns: how long the worker has been ready without a
 * CPU, since its start. True: begin. */
must_check bool nudge_suspects(struct nudge *n, uint64_t wait_ns, nsec_t now);
void nudge_begin(struct nudge *n, uint64_t wait_ns, nsec_t now);
/* After each window. How long the next one is; 0: it is over. */
must_check nsec_t nudge_step(struct nudge *n, uint64_t wait_ns, nsec_t now);
