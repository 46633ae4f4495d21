/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Samples of a law. Distribution functions are written from the textbook definitions, not as the
 * inverse of the code under test.
 */
#pragma once

#include <math.h>

#include "check_main.h"

/* Beyond this distance a sample of n fits its law with less than 1 in 10,000; the seeds are fixed,
 * so a test that passes once passes for ever. */
#define KS_LIMIT(n) (2.2252 / sqrt(n))

/* A distribution function. */
#define CDF(name, p_of_x)                                                                \
    static double name(double x)                                                         \
    {                                                                                    \
        return p_of_x;                                                                   \
    }

static inline double
sample_mean(const double *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum / n;
}

/* Kolmogorov's and Smirnov's, of values in their order. */
static inline double
distance_from(double (*cdf)(double x), const double *values, int n)
{
    double distance = 0;
    for (int i = 0; i < n; i++) {
        double p = cdf(values[i]);
        distance = fmax(distance, fabs(p - (double)i / n));
        distance = fmax(distance, fabs(p - (double)(i + 1) / n));
    }
    return distance;
}
