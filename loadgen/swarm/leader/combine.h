/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The result of a swarm: the sum of what its processes have counted and measured, and, for
 * each of them, what tells whether it kept up. Main thread, with the followers' mutex held.
 */
#pragma once

#include "loadgen/swarm/leader/followers.h"
#include "loadgen/run/run.h"
#include "loadgen/swarm/leader/capacity.h"

struct combine_parts {
    const struct options *options;
    const struct run_spec *spec;
    const struct result *own; /* of this process; NULL: it sent nothing */
    const double *own_rates;  /* one a class */
    unsigned own_first;       /* of its classes, among all */
    unsigned load_classes;    /* the rest is a measuring client's */
    bool was_interrupted, accepts_loss;
    const struct followers *followers;
    const struct capacity *capacity; /* this process first */
};

/* False when memory is short; nothing is to be freed then. */
must_check bool combine_results(struct result *r, const struct combine_parts *parts);
