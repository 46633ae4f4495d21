/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/shared.h"

#include "place/pinner.h"

void
net_shared_map(struct net_shared *shared)
{
    for (unsigned i = 0; i < shared->worker_count; i++) {
        steer_map_move(&shared->steer, i, pinner_cpu(shared->pinner, i));
    }
}
