/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One thread's endless list of requests: draws verb and keys from the workload and gives
 * them to a connection. The same (seed, stream) gives the same list, whatever the server
 * does. Its thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "loadgen/wire/lconn.h"
#include "loadgen/work/workload.h"

struct ask {
    const struct workload *w;
    struct rng rng;
    unsigned thread, threads; /* keys inserted are thread, thread + threads, ... above */
    uint64_t inserted, sequence; /* how many by this thread */
    uint64_t *keys;              /* of the get being made */
};

struct ask_conf {
    const struct workload *workload;
    uint64_t seed, stream;
    unsigned thread, threads;
};

/* False when memory is short. */
must_check bool ask_init(struct ask *a, const struct ask_conf *conf);
void ask_fini(struct ask *a);

/* The next request goes to c, which has room and nothing else to do first. */
void ask_push(struct ask *a, struct lconn *c, nsec_t intended);
