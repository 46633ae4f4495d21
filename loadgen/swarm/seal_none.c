/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A build without OpenSSL: nothing can be proved, and nothing claims to be.
 */
#include "loadgen/swarm/seal.h"

bool
seal_is_there(void)
{
    return false;
}

bool
seal_prove(const struct seal_key *key, enum seal_side side, const uint8_t *hello_leader,
           size_t leader_len, const uint8_t *hello_agent, size_t agent_len,
           uint8_t proof[SEAL_PROOF])
{
    (void)key, (void)side, (void)hello_leader, (void)leader_len, (void)hello_agent;
    (void)agent_len, (void)proof;
    return false;
}

bool
seal_open(struct seal *s, const struct seal_key *key,
          const uint8_t nonce_leader[SEAL_NONCE], const uint8_t nonce_agent[SEAL_NONCE])
{
    (void)s, (void)key, (void)nonce_leader, (void)nonce_agent;
    return false;
}

bool
seal_mac(const struct seal *s, enum seal_side side, const uint8_t *p, size_t len,
         uint8_t mac[FRAME_MAC])
{
    (void)s, (void)side, (void)p, (void)len, (void)mac;
    return false;
}
