/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Probability distributions for sizes, times to live and gaps between requests, written as
 * mutilate writes them: "name:parameter,parameter". Each is its inverse distribution
 * function: one uniform number gives one value, so the size of a key can be a function of
 * the key. Sampling is pure, its randomness an argument.
 */
#pragma once

#include "base/must.h"

enum dist_kind {
    DIST_FIXED,       /* a */
    DIST_UNIFORM,     /* a to b */
    DIST_LOG_UNIFORM, /* a to b, both above 0: the logarithm is uniform */
    DIST_EXPONENTIAL, /* mean a */
    DIST_NORMAL,      /* mean a, standard deviation b, never below 0 */
    DIST_LOGNORMAL,   /* exp of a normal law of mean a, deviation b */
    DIST_WEIBULL,     /* scale a, shape b */
    DIST_PARETO,      /* generalized Pareto: location a, scale b, shape c */
    DIST_GEV,         /* generalized extreme value, the same; never below 0 */
    DIST_PIECES,      /* other laws, each with its share */
};

/* A law is a value; the pieces it may point to are constant and belong to the one that
 * dist_parse made. */
struct dist {
    enum dist_kind kind;
    double a, b, c;
    const struct dist_pieces *pieces;
};

/* "200", "fixed:200", "uniform:MAX" or "uniform:MIN,MAX", "exponential:RATE" (mean 1/RATE),
 * "normal:MEAN,SD", "lognormal:MU,SIGMA", "weibull:SCALE,SHAPE",
 * "pareto:LOCATION,SCALE,SHAPE", "gev:LOCATION,SCALE,SHAPE", "fb_key", "fb_value",
 * "discrete:VALUE=WEIGHT,...", "percentiles:PERCENT=VALUE,..." (between two points the
 * logarithm is uniform), "file:PATH" (dist_file.h), "mix:WEIGHT*LAW+WEIGHT*LAW...".
 * Returns NULL, or a sentence saying what is wrong, perhaps in a buffer that the next call
 * overwrites. What was in d is not freed. */
must_check const char *dist_parse(struct dist *d, const char *text);
void dist_fini(struct dist *d);

/* Whether both give the same values. */
bool dist_is_same(const struct dist *a, const struct dist *b);

static inline struct dist
dist_fixed(double value)
{
    return (struct dist){.kind = DIST_FIXED, .a = value};
}

/* The value at u, on (0, 1): the law's u-quantile. */
double dist_value(const struct dist *d, double u);
/* Of the normal law of mean 0 and deviation 1, to 16 digits. */
double dist_normal_quantile(double u);
/* Whether that is a value that was given, not one drawn. */
bool dist_is_fixed_at(const struct dist *d, double u);
/* The mean of dist_value; INFINITY when there is none. */
double dist_mean(const struct dist *d);

/* dist_value rounded to the nearest whole number within [min, max]. */
uint64_t dist_size(const struct dist *d, double u, uint64_t min, uint64_t max);
/* The mean of dist_size: rounded and cut, so that there is one, another than that of the law. */
double dist_size_mean(const struct dist *d, uint64_t min, uint64_t max);
/* The largest size within [min, max] that dist_size can give. */
uint64_t dist_size_max(const struct dist *d, uint64_t min, uint64_t max);

/* ---- laws made of others ------------------------------------------------------------- */

struct dist_piece {
    double upto; /* share of this piece and all before it */
    struct dist law;
};

/* A number below 1 falls into one of so many equal parts; each part knows the first piece
 * that it may mean, so that looking up takes a step or two (Chen and Asau, 1974). */
#define DIST_GUIDE 1024

struct dist_pieces {
    unsigned count;
    unsigned guide[DIST_GUIDE];
    struct dist_piece piece[];
};

/* `count` pieces, each with its weight in `upto`, weights of any sum above 0: `d` becomes
 * their mixture and owns their laws. */
void dist_of_pieces(struct dist *d, const struct dist_piece *pieces, unsigned count);
