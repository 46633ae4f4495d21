/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether a series of numbers has settled, and where. Pure.
 */
#pragma once

#define STEADY_BATCH 5 /* numbers averaged into one, the 5 of MSER-5 */
#define STEADY_BATCHES_MIN 4

/* How many numbers to cut off at the start so that the mean of the rest is known best:
 * MSER-5 (White, "An effective truncation heuristic for bias reduction in simulation
 * output", Simulation 69, 1997). n when the series has not settled: the best cut lies in its
 * second half, or it is too short to tell. */
unsigned steady_cut(const double *values, unsigned n);

struct drift {
    double change; /* from the first to the second, over the first; 0 when that is 0 */
    double t;      /* of Student's test that both are the same; may be infinite */
};

/* Neighbours may be alike: the test is between means of pieces of each half. */
struct drift drift_of(const double *values, unsigned n);
