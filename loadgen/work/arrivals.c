/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/arrivals.h"

#include <math.h>

#include "base/alloc.h"

#define NEVER_NS 1e18 /* 31 years: what heavy tails have beyond may not fit nsec_t */

static double
exponential(struct rng *rng)
{
    return -log(rng_unit(rng));
}

/* Of mean 1. G. Marsaglia and W. W. Tsang, "A simple method for generating gamma variables",
 * ACM TOMS 26(3), 2000: the cube of a normal variable, nearly; below a shape of 1 by way of
 * the next shape. */
static double
gamma_gap(double shape, struct rng *rng)
{
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
    double c = 1 / sqrt(9 * d);
    for (;;) {
        double z = dist_normal_quantile(rng_unit(rng));
        double v = (1 + c * z) * (1 + c * z) * (1 + c * z);
        if (v > 0 && log(rng_unit(rng)) < z * z / 2 + d * (1 - v + log(v))) {
            double boost = shape < 1 ? pow(rng_unit(rng), 1 / shape) : 1;
            return d * v * boost / shape;
        }
    }
}

/* The two exponential clocks, of the next arrival and of the end of the rate, run side by
 * side; neither remembers, so both start anew when one has rung. */
static double
mmpp_gap(const struct arrivals *a, struct arrivals_source *s)
{
    const struct arrivals_law *law = a->conf.law;
    double gap_ns = 0;
    for (;;) {
        double arrivals = law->rate[s->state] / a->scale_ns;
        double leaves = law->leave[s->state] / (double)NSEC_PER_SEC;
        gap_ns += exponential(&s->rng) / (arrivals + leaves);
        if (rng_unit(&s->rng) * (arrivals + leaves) < arrivals) {
            return gap_ns;
        }
        s->state ^= 1;
    }
}

static double
next_gap_ns(const struct arrivals *a, struct arrivals_source *s)
{
    const struct arrivals_law *law = a->conf.law;
    switch (law->kind) {
    case ARRIVAL_RENEWAL:
        return dist_value(&law->gap, rng_unit(&s->rng)) / law->mean * a->scale_ns;
    case ARRIVAL_GAMMA:
        return gamma_gap(law->shape, &s->rng) * a->scale_ns;
    case ARRIVAL_H2: {
        double rate = law->rate[rng_unit(&s->rng) < law->share ? 0 : 1];
        return exponential(&s->rng) / rate * a->scale_ns;
    }
    case ARRIVAL_MMPP:
        return mmpp_gap(a, s);
    case ARRIVAL_TRACE:
        s->place = s->place + 1 < law->trace_len ? s->place + 1 : 0;
        return law->trace[s->place] * a->scale_ns;
    }
    unreachable();
}

static void
sift_down(struct arrivals *a)
{
    unsigned n = a->conf.sources, i = 0;
    struct arrivals_source moved = a->sources[0];
    for (unsigned child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && a->sources[child + 1].at_ns < a->sources[child].at_ns) {
            child++;
        }
        if (moved.at_ns <= a->sources[child].at_ns) {
            break;
        }
        a->sources[i] = a->sources[child];
        i = child;
    }
    a->sources[i] = moved;
}

static void
advance(struct arrivals *a)
{
    a->sources[0].at_ns += next_gap_ns(a, &a->sources[0]);
    if (a->conf.sources > 1) {
        sift_down(a);
    }
}

static void
start_source(struct arrivals *a, struct arrivals_source *s, unsigned index)
{
    const struct arrivals_law *law = a->conf.law;
    rng_init(&s->rng, rng_mix(a->conf.seed, a->conf.stream, index), a->conf.stream);
    if (law->kind == ARRIVAL_MMPP) {
        double leave = law->leave[0] + law->leave[1];
        s->state = rng_unit(&s->rng) * leave < law->leave[1] ? 0 : 1;
    } else if (law->kind == ARRIVAL_TRACE) {
        s->place = rng_below(&s->rng, law->trace_len);
    }
    /* Several streams, or equal gaps in several threads, would all begin with a whole gap, in
     * step: start each somewhere within it. */
    bool is_fixed = law->kind == ARRIVAL_RENEWAL && law->gap.kind == DIST_FIXED;
    double part = a->conf.sources > 1 || is_fixed ? rng_unit(&s->rng) : 1;
    s->at_ns = next_gap_ns(a, s) * part;
}

static int
by_time(const void *a, const void *b)
{
    const struct arrivals_source *x = a, *y = b;
    return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

void
arrivals_init(struct arrivals *a, const struct arrivals_conf *conf)
{
    must(conf->rate > 0 && conf->sources > 0 && conf->first < conf->every);
    *a = (struct arrivals){.conf = *conf};
    a->scale_ns = (double)NSEC_PER_SEC / conf->rate * conf->sources;
    a->sources = alloc_zeroed(conf->sources, sizeof *a->sources);
    for (unsigned i = 0; i < conf->sources; i++) {
        start_source(a, &a->sources[i], i);
    }
    qsort(a->sources, conf->sources, sizeof *a->sources, by_time); /* sorted is a heap */
    for (unsigned i = 0; i < conf->first; i++) {
        advance(a);
    }
}

void
arrivals_fini(struct arrivals *a)
{
    free(a->sources);
    a->sources = NULL;
}

nsec_t
arrivals_next(struct arrivals *a)
{
    /* Times are kept as fractions: rounding every gap would shift the rate. */
    double at_ns = a->sources[0].at_ns;
    const struct schedule *s = a->conf.schedule;
    if (s != NULL) {
        /* Bent to where the schedule has come as far as its mean rate would have come. */
        double mean_ns = at_ns * (1 / (double)NSEC_PER_SEC) * s->mean;
        at_ns = schedule_time(s, &a->cursor, mean_ns) * (double)NSEC_PER_SEC;
    }
    nsec_t next = a->conf.start + (nsec_t)fmin(at_ns, NEVER_NS);
    for (unsigned i = 0; i < a->conf.every; i++) {
        advance(a);
    }
    a->last = next > a->last ? next : a->last; /* bending rounds */
    return a->last;
}

bool
arrivals_adds_up(const struct arrivals_law *law)
{
    return law->kind == ARRIVAL_RENEWAL && law->gap.kind == DIST_EXPONENTIAL;
}
