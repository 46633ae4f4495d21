/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The schedule of an open loop: when each request is meant to start. It depends on the rate,
 * the law of the gaps and the seed only, never on what happens to the requests; a request
 * that cannot be sent in time keeps its place. Pure; its owner's thread only.
 */
#pragma once

#include "base/clock.h"
#include "base/rng.h"
#include "loadgen/dist.h"

struct arrival {
    struct dist gap; /* of mean 1 */
    double mean_gap_ns;
    nsec_t start;
    double offset_ns; /* of the latest arrival from start */
    struct rng rng;
};

/* `rate` is in requests a second, > 0. The same (seed, stream) gives the same schedule. */
void arrival_init(struct arrival *a, const struct dist *gap, double rate, nsec_t start,
                  uint64_t seed, uint64_t stream);

/* The intended start of the next request, never before that of the previous one. */
nsec_t arrival_next(struct arrival *a);
