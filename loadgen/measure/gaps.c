/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/gaps.h"

#include <math.h>

#define EACH_MAX 1e6
#define TERMS 100 /* of the series below: the last ones are nothing */

unsigned
gaps_each(double rate)
{
    double span_s = (double)GAPS_SPAN / (double)NSEC_PER_SEC;
    return (unsigned)fmin(EACH_MAX, fmax(1, ceil(rate * span_s)));
}

/* How much more of a lies below some value than of b below that value and the play. */
static double
excess(const struct hist *a, const struct hist *b, double play)
{
    uint32_t at_a = 0, at_b = 0;
    uint64_t low, high, count, low_b, high_b, count_b = 0;
    double below_a = 0, below_b = 0, most = 0;
    double all_a = (double)hist_count(a), all_b = (double)hist_count(b);
    bool has_b = hist_next(b, &at_b, &low_b, &high_b, &count_b);
    while (hist_next(a, &at_a, &low, &high, &count)) {
        below_a += (double)count;
        while (has_b && (double)high_b <= (double)high + play) {
            below_b += (double)count_b;
            has_b = hist_next(b, &at_b, &low_b, &high_b, &count_b);
        }
        most = fmax(most, below_a / all_a - below_b / all_b);
    }
    return most;
}

static double
distance(const struct hist *a, const struct hist *b, double play)
{
    return fmax(excess(a, b, play), excess(b, a, play));
}

/* Kolmogorov's limit law, with the correction for small samples of M. A. Stephens, "EDF
 * statistics for goodness of fit", JASA 69 (1974). */
static double
chance_of(double ks, double n)
{
    double x = (sqrt(n) + 0.12 + 0.11 / sqrt(n)) * ks, sum = 0;
    if (x < 0.2) {
        return 1; /* the series converges too slowly, and says so anyway */
    }
    for (int k = 1; k <= TERMS; k++) {
        sum += (k % 2 == 1 ? 2 : -2) * exp(-2.0 * k * k * x * x);
    }
    return fmax(0, fmin(1, sum));
}

static double
dispersion(const struct hist *h, unsigned each)
{
    double cv = hist_mean(h) > 0 ? hist_stddev(h) / hist_mean(h) : 0;
    return cv * cv * each;
}

struct gaps_apart
gaps_compare(const struct hist *intended, const struct hist *issued, unsigned each)
{
    double n = (double)hist_count(intended), m = (double)hist_count(issued);
    struct gaps_apart g = {.p = 1};
    if (each == 0 || n < GAPS_LEAST || m < GAPS_LEAST) {
        return g;
    }
    g.is_known = true;
    g.mean_ns = hist_mean(intended);
    g.apart = distance(intended, issued, GAPS_PLAY * g.mean_ns);
    g.ks = distance(intended, issued, 0);
    g.p = chance_of(g.ks, n * m / (n + m));
    g.scv_intended = dispersion(intended, each);
    g.scv_issued = dispersion(issued, each);
    return g;
}
