/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The schedule of an open loop: when each request is meant to start. It depends on the rate,
 * the law of the gaps and the seed only, never on what happens to the requests; a request
 * that cannot be sent in time keeps its place. Pure; its owner's thread only.
 *
 * Exponential gaps add up: any number of such streams together are one. Streams of any other
 * law do not, together they come close to exponential ones. So a schedule says how many
 * independent streams it joins, and several threads can share one stream: each makes all of
 * it and takes every so many-th arrival.
 */
#pragma once

#include "base/clock.h"
#include "base/rng.h"
#include "loadgen/work/dist.h"
#include "loadgen/work/schedule.h"

enum arrival_kind {
    ARRIVAL_RENEWAL, /* independent gaps of one distribution */
    ARRIVAL_GAMMA,   /* gaps of a gamma distribution */
    ARRIVAL_H2,      /* exponential gaps of one of two rates, drawn for each gap */
    ARRIVAL_MMPP,    /* exponential gaps of one of two rates that lasts for a while */
    ARRIVAL_TRACE,   /* gaps as they were recorded, again and again */
};

/* A law of gaps; the rate is given elsewhere, so only its shape counts. */
struct arrivals_law {
    enum arrival_kind kind;
    struct dist gap;
    double mean;     /* RENEWAL: of gap */
    double shape;    /* GAMMA */
    double share;    /* H2: of the first rate */
    double rate[2];  /* H2, MMPP: for a mean rate of 1 */
    double leave[2]; /* MMPP: how often each rate ends, a second */
    double *trace;   /* gaps of mean 1 */
    size_t trace_len;
};

/* "exponential", "fixed", "uniform[:MAX|MIN,MAX]", "normal[:CV|MEAN,SD]", "lognormal[:CV]",
 * "weibull:SHAPE", "pareto[:SHAPE|LOCATION,SCALE,SHAPE]", "gev:LOCATION,SCALE,SHAPE",
 * "fb_ia[:HOUR]", "gamma:SHAPE", "h2:SCV", "mmpp:RATE,RATE,LEAVE,LEAVE", "bursty",
 * "gaps:FILE", "times:FILE". NULL, or a sentence saying what is wrong. What was in the law
 * is not freed. */
must_check const char *arrivals_parse(struct arrivals_law *law, const char *text);
void arrivals_law_fini(struct arrivals_law *law);
/* Whether streams of this law together are one of the same law. */
bool arrivals_adds_up(const struct arrivals_law *law);

struct arrivals_conf {
    const struct arrivals_law *law; /* lives longer */
    double rate;                    /* requests a second, > 0, of all that is made */
    nsec_t start;
    uint64_t seed, stream; /* the same give the same schedule */
    unsigned sources;      /* independent streams that share the rate */
    unsigned every, first; /* of the arrivals made, first, first + every, ... are taken */
    /* Bends time: `rate` is then this one's share of schedule->mean. NULL: it never changes.
     * Settled; lives longer. */
    const struct schedule *schedule;
};

/* One stream. */
struct arrivals_source {
    double at_ns; /* of its next arrival, from start */
    struct rng rng;
    unsigned state; /* MMPP: which rate */
    size_t place;   /* TRACE: of the next gap */
};

struct arrivals {
    struct arrivals_conf conf;
    double scale_ns;                 /* a gap of 1 */
    struct arrivals_source *sources; /* a heap, the next arrival on top */
    struct schedule_cursor cursor;
    nsec_t last;
};

void arrivals_init(struct arrivals *a, const struct arrivals_conf *conf);
void arrivals_fini(struct arrivals *a);

/* The intended start of the next request, never before that of the previous one. */
nsec_t arrivals_next(struct arrivals *a);
