/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the requests of a class come from, and what its connections do: settings, constant
 * during a run.
 */
#pragma once

#include "loadgen/drive/pacing.h"
#include "loadgen/work/arrivals.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/schedule.h"

enum traffic_mode {
    TRAFFIC_CLOSED, /* the next request when a reply came */
    TRAFFIC_OPEN,   /* by a schedule that takes no notice of replies */
    TRAFFIC_PARTLY, /* sessions by a schedule; within one, the next when a reply came */
    TRAFFIC_MODES,
};

/* What a stream of arrivals is one of. */
enum traffic_scope {
    TRAFFIC_TOTAL,  /* all threads share one */
    TRAFFIC_AGENT,  /* the same: each process of a swarm makes those of its share */
    TRAFFIC_THREAD, /* one each thread */
    TRAFFIC_CONN,   /* one each connection */
};

/* What happens to a connection that was lost. */
enum traffic_reconnect {
    RECONNECT_BACKOFF, /* opened again after pauses that grow */
    RECONNECT_NOW,
    RECONNECT_NONE,
};

#define TRAFFIC_SESSION_MAX 1000000
#define TRAFFIC_LIFETIME_MAX UINT32_MAX

struct traffic {
    enum traffic_mode mode;
    bool is_timed;            /* a trace says when: OPEN, without a rate of its own */
    double rate;              /* not CLOSED: requests a second of all threads */
    struct schedule schedule; /* no points: the rate never changes; settled for a run */
    struct arrivals_law arrivals;
    enum traffic_scope scope;

    /* seconds from a reply to the next request of that user; fixed 0 */
    struct dist think;
    struct dist session; /* PARTLY: requests, at least 1 */

    enum pacing_late late;
    double cap; /* LATE_CAP: of the rate, at least 1 */
    /* not CLOSED: outstanding requests, of all threads; 0: any */
    uint64_t max_outstanding;

    struct dist lifetime; /* requests of a connection; fixed 0: it is never closed */
    double connect_rate;  /* connections opened a second, of all threads; 0: any */
    enum traffic_reconnect reconnect;
};

static inline bool
traffic_is_open(const struct traffic *t)
{
    return t->mode != TRAFFIC_CLOSED;
}

static inline bool
traffic_thinks(const struct traffic *t)
{
    return t->think.kind != DIST_FIXED || t->think.a > 0;
}

/* The traffic of one run: *out becomes a copy of `from` with its own schedule, and shares the
 * rest with it. With a rate of 0 it is a closed loop, unless the schedule has rates of its own
 * and `is_peak` is false. NULL, or a sentence; out->schedule is finished in any case. */
must_check const char *traffic_settle(struct traffic *out, const struct traffic *from,
                                      const struct schedule_run *run, bool is_peak);

extern const char *const traffic_mode_names[TRAFFIC_MODES];

/* Requests of a session in the mean. */
double traffic_session_mean(const struct traffic *t);
