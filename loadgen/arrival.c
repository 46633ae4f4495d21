/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/arrival.h"

void
arrival_init(struct arrival *a, const struct dist *gap, double rate, nsec_t start,
             uint64_t seed, uint64_t stream)
{
    must(rate > 0);
    a->gap = *gap;
    a->mean_gap_ns = (double)NSEC_PER_SEC / rate;
    a->start = start;
    rng_init(&a->rng, seed, stream);
    /* Equal gaps would put the schedules of all threads in step: start each in a random
     * phase. The first arrival comes a whole gap later, hence the minus. */
    a->offset_ns = gap->kind == DIST_FIXED ? -rng_unit(&a->rng) * a->mean_gap_ns : 0;
}

nsec_t
arrival_next(struct arrival *a)
{
    /* The sum is kept as a fraction: rounding every gap would shift the rate. */
    double u = rng_unit(&a->rng);
    double v = a->gap.kind == DIST_NORMAL ? rng_unit(&a->rng) : 0.5;
    a->offset_ns += dist_value(&a->gap, u, v) * a->mean_gap_ns;
    return a->start + (nsec_t)a->offset_ns;
}
