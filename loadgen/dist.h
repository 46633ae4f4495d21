/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Probability distributions for sizes and for gaps between requests, written as mutilate
 * writes them: "name:parameter,parameter". A distribution is a value; sampling is pure, its
 * randomness an argument, so the size of a key can be a function of the key.
 */
#pragma once

#include <stdint.h>

#include "base/must.h"

enum dist_kind {
    DIST_FIXED,       /* a */
    DIST_UNIFORM,     /* a to b */
    DIST_EXPONENTIAL, /* mean a */
    DIST_NORMAL,      /* mean a, standard deviation b, never below 0 */
    DIST_PARETO,      /* generalized Pareto: location a, scale b, shape c */
    DIST_GEV,         /* generalized extreme value: location a, scale b, shape c */
    DIST_FB_VALUE,    /* value sizes of the ETC pool (Atikoglu et al., 2012) */
};

struct dist {
    enum dist_kind kind;
    double a, b, c;
};

/* Sizes: "200", "fixed:200", "uniform:MAX" or "uniform:MIN,MAX", "exponential:RATE" (mean
 * 1/RATE), "normal:MEAN,SD", "pareto:LOCATION,SCALE,SHAPE", "gev:LOCATION,SCALE,SHAPE",
 * "fb_key", "fb_value". Returns NULL or a sentence saying what is wrong. */
must_check const char *dist_parse_size(struct dist *d, const char *text);

/* Gaps: "fixed", "uniform", "exponential", "normal[:CV]", "normal:MEAN,SD" (of which only
 * the ratio matters), "pareto[:LOCATION,SCALE,SHAPE]" (of which only the shape matters),
 * "fb_ia". The mean becomes 1 whatever the parameters: the rate is given elsewhere. */
must_check const char *dist_parse_gap(struct dist *d, const char *text);

/* The value for u and v, independent and uniform on (0, 1); only the normal law uses v. */
double dist_value(const struct dist *d, double u, double v);

/* dist_value rounded to the nearest whole number within [min, max]. */
uint64_t dist_size(const struct dist *d, double u, double v, uint64_t min, uint64_t max);

/* The largest size within [min, max] that dist_size can give. */
uint64_t dist_size_max(const struct dist *d, uint64_t min, uint64_t max);
