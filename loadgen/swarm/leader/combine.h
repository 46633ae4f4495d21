/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The result of a swarm: the sum of what its processes have counted and measured, and, for
 * each of them, what tells whether it kept up. Main thread, with the members' mutex held.
 */
#pragma once

#include "loadgen/swarm/leader/members.h"
#include "loadgen/swarm/leader/share_out.h"

struct combine_parts {
    const struct options *options;
    bool was_interrupted, accepts_loss;
    const struct members *members;
    const struct capacity *capacity; /* of each member */
};

void combine_results(struct result *r, const struct combine_parts *parts);
