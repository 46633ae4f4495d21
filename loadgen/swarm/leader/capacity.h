/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much each process of a swarm was seen to send of each class in a closed loop: weights by
 * which a rate is shared out so that none is asked for more of its own than the others.
 * Pure but for memory; under the caller's lock.
 */
#pragma once

#include <stdbool.h>

#include "base/must.h"

struct capacity {
    unsigned parts, classes;
    double *qps;    /* one a part, class after class */
    bool *is_known; /* of each class */
};

/* False when memory is short. */
must_check bool capacity_init(struct capacity *c, unsigned parts, unsigned classes);
/* Also of one that is all zero. */
void capacity_fini(struct capacity *c);

/* What each part achieved a second, 0 of one that takes no part; for all of them at once. */
void capacity_learn(struct capacity *c, unsigned class_index, const double *qps);
/* Puts what is known in place of those weights that are not 0: so that the largest is 1. Nothing
 * is done when nothing is known. */
void capacity_weigh(const struct capacity *c, unsigned class_index, double *weights);
/* Of all classes that are known; 0: of none. */
double capacity_of(const struct capacity *c, unsigned part);
