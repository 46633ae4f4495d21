/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A rate of requests, or of keys where limits count keys, that keeps the process at a share of
 * CPU time. Pure: time, CPU time and counts are arguments.
 *
 * The law is integral control: every CPUSHARE_PERIOD the rate moves a third of the way to the one
 * that would have used the target exactly, had all CPU time been the requests'. An error shrinks
 * to 2/3 in each step, below 1/400 in 1.5 s; what does not go with requests (background threads)
 * is found by moving again. Unlike a quota of the kernel it never stops the process.
 */
#pragma once

#include "base/clock.h"

#define CPUSHARE_PERIOD (100 * NSEC_PER_MSEC)
#define CPUSHARE_RATE_LEAST 10 /* requests a second, to be measured */

struct cpushare {
    unsigned percent;  /* of one CPU; 0: none */
    double rate;       /* requests a second; 0: not known yet */
    uint64_t given;    /* of it, what the last step returned */
    nsec_t at;         /* of the last step; 0: none */
    nsec_t cpu_ns;     /* the process had used then */
    uint64_t requests; /* and had admitted */
};

/* percent 0 ends it. A changed target starts from the rate that there is. */
void cpushare_set(struct cpushare *c, unsigned percent);
/* One look: cpu_ns and requests are totals since the start. Returns the rate from here on, 0:
 * not known yet; the same as before while it has moved by half a percent at most. */
uint64_t cpushare_step(struct cpushare *c, nsec_t now, nsec_t cpu_ns, uint64_t requests);
