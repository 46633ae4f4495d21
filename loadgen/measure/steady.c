/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/steady.h"

#include <math.h>

#include "base/must.h"

#define DRIFT_PIECES 8 /* a half */

static double
mean_of(const double *values, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += values[i];
    }
    return sum / n;
}

unsigned
steady_cut(const double *values, unsigned n)
{
    unsigned batches = n / STEADY_BATCH;
    if (batches < STEADY_BATCHES_MIN) {
        return n;
    }
    /* From the end, so that each sum takes one more step only. The last quarter is kept: a
     * few numbers that happen to be alike are no rest. */
    unsigned least_kept =
        batches / 4 > STEADY_BATCHES_MIN / 2 ? batches / 4 : STEADY_BATCHES_MIN / 2;
    double sum = 0, squares = 0, least = INFINITY;
    unsigned best = batches, kept = 0;
    for (unsigned d = batches; d-- > 0;) {
        double mean = mean_of(&values[d * STEADY_BATCH], STEADY_BATCH);
        sum += mean;
        squares += mean * mean;
        kept++;
        double error = fmax(0, squares - sum * sum / kept) / ((double)kept * kept);
        if (kept >= least_kept && error <= least) {
            least = error;
            best = d;
        }
    }
    return best * 2 <= batches ? best * STEADY_BATCH : n;
}

struct drift
drift_of(const double *values, unsigned n)
{
    struct drift drift = {0};
    if (n < 2 * DRIFT_PIECES) {
        return drift;
    }
    double mean[2], error = 0;
    for (unsigned half = 0; half < 2; half++) {
        const double *at = values + half * (n / 2);
        unsigned len = half == 0 ? n / 2 : n - n / 2;
        mean[half] = mean_of(at, len);
        double squares = 0;
        for (unsigned i = 0; i < DRIFT_PIECES; i++) {
            unsigned first = i * len / DRIFT_PIECES, end = (i + 1) * len / DRIFT_PIECES;
            squares += pow(mean_of(at + first, end - first) - mean[half], 2);
        }
        error += squares / (DRIFT_PIECES * (DRIFT_PIECES - 1.0));
    }
    drift.change = mean[0] != 0 ? (mean[1] - mean[0]) / fabs(mean[0]) : 0;
    double apart = fabs(mean[1] - mean[0]);
    drift.t = apart > 0 ? apart / sqrt(error) : 0;
    return drift;
}
