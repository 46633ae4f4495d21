/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Little's law as a check of the measurement: the mean number of outstanding requests,
 * taken by the clock from the moments at which that number changed, must be the rate of the
 * answers times their mean latency. A request that is forgotten, counted twice, or has a
 * wrong stamp shows as a difference (J. D. C. Little, "A proof for the queuing formula
 * L = lambda W", Operations Research 9, 1961). Pure; its owner's thread only.
 */
#pragma once

#include <math.h>

#include "base/clock.h"
#include "base/must.h"

struct little {
    unsigned count; /* on their way */
    nsec_t last;    /* when that was last changed */
};

/* Time passes until `now`: what is to be added to the sum of request nanoseconds between
 * `start` and `end`. */
static inline uint64_t
little_pass(struct little *l, nsec_t start, nsec_t end, nsec_t now)
{
    if (now <= l->last) {
        return 0;
    }
    nsec_t from = l->last > start ? l->last : start;
    nsec_t to = now < end ? now : end;
    l->last = now;
    return to > from ? (to - from) * l->count : 0;
}

/* How many were on their way at those edges of the window that little_pass is about to pass: told
 * before it, as a thread that stood still learns of both at once. */
static inline unsigned
little_edges(const struct little *l, nsec_t start, nsec_t end, nsec_t now)
{
    if (likely(l->last >= start && now < end)) {
        return 0;
    }
    unsigned passed = (l->last < start && now >= start) + (l->last < end && now >= end);
    return passed * l->count;
}

struct little_sums {
    double on_their_way_ns; /* sum of the above of what is measured, over all threads */
    double answered;        /* requests that are measured */
    double latency_ns;      /* of these, the mean from issue */
    double longest_ns;      /* of these */
    double at_edges;        /* outstanding requests at the begin and at the end */
};

/* How far the two sides are apart, as a share of the first, beyond what requests that were
 * on their way at the window's edges explain: each counts on one side by at most twice the
 * longest latency. */
static inline double
little_apart(const struct little_sums *s)
{
    double apart = fabs(s->on_their_way_ns - s->answered * s->latency_ns);
    double edges = 2 * s->at_edges * s->longest_ns;
    return s->on_their_way_ns > 0 ? fmax(0, apart - edges) / s->on_their_way_ns : 0;
}
