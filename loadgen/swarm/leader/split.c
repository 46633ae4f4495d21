/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/split.h"

#include <math.h>

/* The part with the largest remainder that has not been given one more yet. */
static unsigned
largest(const double *rest, unsigned parts)
{
    unsigned best = 0;
    for (unsigned i = 1; i < parts; i++) {
        best = rest[i] > rest[best] ? i : best;
    }
    return best;
}

void
split_by_weight(uint64_t total, const double *weights, unsigned parts, uint64_t *shares)
{
    double rest[SPLIT_PARTS_MAX], sum = 0;
    uint64_t given = 0;
    must(parts > 0 && parts <= SPLIT_PARTS_MAX);
    for (unsigned i = 0; i < parts; i++) {
        must(weights[i] >= 0 && weights[i] <= SPLIT_WEIGHT_MAX);
        sum += weights[i];
    }
    must(sum > 0);
    for (unsigned i = 0; i < parts; i++) {
        double share = (double)total * (weights[i] / sum);
        uint64_t whole = (uint64_t)floor(share);
        /* Rounding may take a share beyond what is left. */
        shares[i] = whole < total - given ? whole : total - given;
        rest[i] = weights[i] > 0 ? share - (double)shares[i] : -1;
        given += shares[i];
    }
    /* Less than one for each part is left, unless the total is beyond a double's digits. */
    while (given < total) {
        unsigned i = largest(rest, parts);
        shares[i]++;
        rest[i] -= 1;
        given++;
    }
}
