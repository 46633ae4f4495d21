/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Runs whose true percentiles are known, in pieces as a series has them: a queue.
 */
#pragma once

#include <math.h>

#include "base/rng.h"
#include "check_unit.h"
#include "loadgen/measure/ci.h"

#define BATCHES 64
#define BATCH_BITS 8
#define ALL_BITS 10
#define MAX_NS UINT64_C(100000000000)
#define SERVICE_NS 1e5

/* A run in pieces, and as a whole. */
struct sample {
    struct hist *batches[BATCHES];
    struct hist *coarse; /* their sum */
    struct hist *all;
};

static inline void
sample_init(struct sample *s)
{
    for (unsigned i = 0; i < BATCHES; i++) {
        s->batches[i] = hist_create(BATCH_BITS, MAX_NS);
        ck_assert_ptr_nonnull(s->batches[i]);
    }
    s->coarse = hist_create(BATCH_BITS, MAX_NS);
    s->all = hist_create(ALL_BITS, MAX_NS);
    ck_assert(s->coarse != NULL && s->all != NULL);
}

/* Empty again. */
static inline void
sample_reset(struct sample *s)
{
    for (unsigned i = 0; i < BATCHES; i++) {
        hist_reset(s->batches[i]);
    }
    hist_reset(s->coarse);
    hist_reset(s->all);
}

static inline void
sample_fini(struct sample *s)
{
    for (unsigned i = 0; i < BATCHES; i++) {
        hist_destroy(&s->batches[i]);
    }
    hist_destroy(&s->coarse);
    hist_destroy(&s->all);
}

static inline void
record(struct sample *s, double share, double ns)
{
    hist_record(s->batches[(unsigned)(share * BATCHES)], (uint64_t)ns);
    hist_record(s->coarse, (uint64_t)ns);
    hist_record(s->all, (uint64_t)ns);
}

static inline double
exponential(struct rng *rng, double mean)
{
    return -log(rng_unit(rng)) * mean;
}

/* Time in an M/M/1 queue of that load, from its steady state on; load 0: of independent
 * requests. */
static inline void
draw_slower_queue(struct sample *s, struct rng *rng, double load, double n, double slower)
{
    double mean = SERVICE_NS / (1 - load);
    double gap = load > 0 ? SERVICE_NS / load : SERVICE_NS;
    double end = n * gap, sojourn = exponential(rng, mean);
    for (double at = exponential(rng, gap); at < end;) {
        record(s, at / end, slower * sojourn);
        double wait = exponential(rng, gap);
        at += wait;
        sojourn = load > 0 ? fmax(0, sojourn - wait) + exponential(rng, SERVICE_NS)
                           : exponential(rng, SERVICE_NS);
    }
}

static inline void
draw_queue(struct sample *s, struct rng *rng, double load, double n)
{
    draw_slower_queue(s, rng, load, n, 1);
}

static inline struct ci
interval(const struct sample *s, double q)
{
    return ci_of((const struct hist *const *)s->batches, BATCHES, s->coarse, q);
}

/* Within the width of a bucket; no upper bound when it lies beyond all requests. */
static inline bool
holds(const struct sample *s, struct ci ci, double truth)
{
    double bucket = ldexp(truth, -ALL_BITS);
    return truth >= (double)hist_quantile(s->all, ci.low) - bucket &&
           (ci.high >= 1 || truth <= (double)hist_quantile(s->all, ci.high) + bucket);
}
