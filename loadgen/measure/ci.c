/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/ci.h"

#include <math.h>

#include "base/must.h"

#define GROUPS_MIN 16 /* longer batches would leave too few to see a variance */
#define Z 1.959964    /* of 95 %, two-sided */
#define NEARER 5
#define DEPENDENT 0.25 /* groups correlated beyond this are still too short */

/* What a batch holds: requests, and those beyond a value. */
struct part {
    double all, beyond;
};

double
ci_student(unsigned freedom)
{
    static const double few[] = {12.706205, 4.302653, 3.182446, 2.776445};
    must(freedom > 0);
    if (freedom <= sizeof few / sizeof few[0]) {
        return few[freedom - 1];
    }
    /* Abramowitz and Stegun 26.7.5. */
    double n = freedom, z = Z;
    return z + (pow(z, 3) + z) / (4 * n) +
           (5 * pow(z, 5) + 16 * pow(z, 3) + 3 * z) / (96 * n * n) +
           (3 * pow(z, 7) + 19 * pow(z, 5) + 17 * pow(z, 3) - 15 * z) / (384 * n * n * n);
}

/* Variance of the number beyond, over that of independent requests; each `size` batches in
 * a row are one group. */
static double
inflation_of(const struct part *parts, unsigned count, unsigned size)
{
    double all = 0, beyond = 0, squares = 0, products = 0, before = 0;
    unsigned groups = count / size;
    for (unsigned i = 0; i < groups * size; i++) {
        all += parts[i].all;
        beyond += parts[i].beyond;
    }
    double share = all > 0 ? beyond / all : 0;
    if (share <= 0 || share >= 1) {
        return 1;
    }
    for (unsigned g = 0; g < groups; g++) {
        double d = 0;
        for (unsigned i = g * size; i < (g + 1) * size; i++) {
            d += parts[i].beyond - share * parts[i].all;
        }
        squares += d * d;
        products += d * before;
        before = d;
    }
    double inflation = squares * groups / (groups - 1.0) / (all * share * (1 - share));
    /* What neighbours have in common goes on beyond them, as in an autoregression. */
    double common = squares > 0 ? products / squares : 0;
    if (common > DEPENDENT) {
        common = fmin(common, 0.9);
        inflation *= (1 + common) / (1 - common);
    }
    return inflation;
}

/* The largest over lengths of groups: too short ones hide what is common to neighbours, the
 * longest are few. *freedom: of that which was largest. */
static double
inflation(const struct part *parts, unsigned count, unsigned *freedom)
{
    double most = 1;
    *freedom = count - 1;
    for (unsigned size = 1; count / size >= GROUPS_MIN; size *= 2) {
        double now = inflation_of(parts, count, size);
        if (now > most) {
            most = now;
            *freedom = count / size - 1;
        }
    }
    return most;
}

/* Of the number beyond the percentile q. */
static double
inflation_at(const struct hist *const *batches, unsigned count, uint64_t value,
             unsigned *freedom)
{
    struct part parts[CI_BATCHES_MAX];
    for (unsigned i = 0; i < count; i++) {
        parts[i].all = (double)hist_count(batches[i]);
        parts[i].beyond = (double)hist_above(batches[i], value);
    }
    return inflation(parts, count, freedom);
}

/* z: how many standard deviations hold 95 %. */
static struct ci
of_inflation(double n, double worst, double z, double q)
{
    double tail = fmin(q, 1 - q);
    struct ci ci = {
        .high = 1,
        .effective = n / worst,
        .needed = CI_BEYOND_MIN / (n * tail),
        .enough = pow(Z / CI_TAIL_PRECISION, 2) * (1 - tail) / (n / worst * tail),
        .is_known = n * tail >= CI_BEYOND_MIN - 0.5, /* 1 - q is not exact */
    };
    if (ci.is_known) {
        double half = z * sqrt(n * worst * q * (1 - q));
        /* How many lie beyond is a sum of few large groups: no normal number. One group more
         * on either side makes up for it. */
        ci.low = fmax(0, (floor(n * q - half) - (worst - 1)) / n);
        ci.high = fmin(1, (ceil(n * q + half) + worst) / n);
    }
    return ci;
}

struct ci
ci_of(const struct hist *const *batches, unsigned count, const struct hist *all, double q)
{
    double n = (double)hist_count(all);
    must(q > 0 && q < 1 && count <= CI_BATCHES_MAX);
    if (count < CI_BATCHES_MIN || n == 0) {
        return (struct ci){.high = 1};
    }
    unsigned freedom, freedom_near;
    double worst = inflation_at(batches, count, hist_quantile(all, q), &freedom);
    /* A far percentile is passed in few places of a run; a nearer one shows better how long
     * such places last. */
    double near = 1 - NEARER * (1 - q);
    if (near >= 0.5) {
        double other =
            inflation_at(batches, count, hist_quantile(all, near), &freedom_near);
        freedom = other > worst ? freedom_near : freedom;
        worst = fmax(worst, other);
    }
    return of_inflation(n, worst, ci_student(freedom), q);
}

struct ci
ci_of_effective(double n, double effective, double q)
{
    must(q > 0 && q < 1);
    if (n < 1 || effective <= 0) {
        return (struct ci){.high = 1};
    }
    return of_inflation(n, fmax(1, n / effective), Z, q);
}
