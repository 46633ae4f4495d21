/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Latencies of a run, one by one, for those that need more than a histogram: all, or a
 * share of them, each kept or not whatever the others are. Memory is set aside before and
 * touched as it fills; what does not fit is counted. Its sending thread's until the run
 * is over.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "base/rng.h"

#define SAMPLES_MAX (UINT64_C(16) << 20) /* a thread: 256 MiB */

struct sample {
    nsec_t start;     /* after the start of the window */
    uint64_t latency; /* ns */
};

struct samples {
    struct sample *all; /* NULL: none are wanted */
    uint64_t count, dropped;
    uint64_t passed_over; /* so many before the next that is kept */
    double share;
    struct rng rng;
};

/* Of this share of the requests, above 0 and at most 1. */
void samples_init(struct samples *s, double share);
void samples_fini(struct samples *s);
/* Forgets all; which are kept from here on is told by seed and stream, whose numbers are
 * other ones than those of rng_init with both. */
void samples_start(struct samples *s, uint64_t seed, uint64_t stream);

/* For samples_add: how many are passed over before the next. */
uint64_t samples_pass_over(struct samples *s);

static inline void
samples_add(struct samples *s, nsec_t start, uint64_t latency)
{
    if (likely(s->all == NULL)) {
        return;
    }
    if (s->passed_over > 0) {
        s->passed_over--;
        return;
    }
    s->passed_over = s->share < 1 ? samples_pass_over(s) : 0;
    if (s->count == SAMPLES_MAX) {
        s->dropped++;
    } else {
        s->all[s->count++] = (struct sample){start, latency};
    }
}
