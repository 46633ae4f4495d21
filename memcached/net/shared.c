/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/shared.h"

#include "core/classify.h"
#include "place/pinner.h"
#include "sock/addr.h"

void
net_shared_map(struct net_shared *shared)
{
    for (unsigned i = 0; i < shared->worker_count; i++) {
        steer_map_move(&shared->steer, i, pinner_cpu(shared->pinner, i));
    }
}

uint8_t
net_shared_declared(const struct net_shared *shared, const struct peer *peer,
                    enum req_class listener)
{
    uint8_t ip[ADDR_IP_BYTES];
    const struct class_rules *rules = &shared->core.class_rules;
    bool has_ip = rules->peer_count > 0 && addr_ip(peer, ip);
    return classify_place(rules, has_ip ? ip : NULL, listener);
}
