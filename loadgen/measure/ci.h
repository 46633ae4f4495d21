/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How far the percentile of a run may lie from the true one. Requests that wait in one queue
 * have latencies alike, so that n of them tell less than n independent ones: how much less
 * is learnt from batches, pieces of the run in their order. If the number of requests beyond
 * the percentile varied from batch to batch as that of independent ones does, the variance
 * would be n q (1-q); it is `inflation` times that. The interval is then that of the order
 * statistics of n/inflation independent samples (batch means: Schmeiser 1982; order
 * statistics: David and Nagaraja, "Order Statistics", 7.1). Pure.
 */
#pragma once

#include "base/hist.h"

#define CI_BATCHES_MIN 20 /* below this nothing is said */
#define CI_BATCHES_MAX 1024
#define CI_BEYOND_MIN 10 /* so many requests have to lie beyond the percentile */
/* What `enough` is enough for: +-10 % of the tail's mass. */
#define CI_TAIL_PRECISION 0.10

struct ci {
    bool is_known; /* otherwise low and high are 0 and 1 */
    /* Shares of the requests: the true percentile q lies, with 95 %, between the measured
     * percentiles low and high; high is 1 when it may lie beyond all that was measured. */
    double low, high;
    double effective; /* independent samples that would tell as much; 0: cannot say */
    /* So many times this run's length is needed for anything to be known, and for the
     * tail's mass to be known to CI_TAIL_PRECISION; 0: cannot say. */
    double needed, enough;
};

/* Of the percentile q (0 < q < 1). The batches are of equal length in time and may hold
 * different numbers of requests; `all` is their sum. At most CI_BATCHES_MAX. */
struct ci ci_of(const struct hist *const *batches, unsigned count, const struct hist *all,
                double q);
/* Of n requests of which it is known how many independent ones tell as much. */
struct ci ci_of_effective(double n, double effective, double q);

/* How many standard errors hold 95 % (Student's t, two-sided); freedom > 0. */
double ci_student(unsigned freedom);
