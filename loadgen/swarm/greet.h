/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How a leader and an agent begin: hellos, and, when there is a key, the proofs of both
 * that they have it. The leader proves first, so that an agent never reveals whether a
 * key is right to a process that does not have it. After that the connection is sealed,
 * and the start of the agent's nonce is the session that all frames name. The
 * connection's thread.
 */
#pragma once

#include "base/must.h"
#include "loadgen/swarm/chan.h"

#define GREET_TIME (5 * NSEC_PER_SEC) /* for all of it */

enum greet {
    GREET_GOOD,
    GREET_FAILED, /* the sentence says why */
    GREET_WRONG,  /* agent: the other side has not the key */
};

/* `key` of length 0: none, both sides must do without. */
must_check enum greet greet_leader(struct chan *c, const struct seal_key *key, char *err,
                                   size_t err_len);
must_check enum greet greet_agent(struct chan *c, const struct seal_key *key, char *err,
                                  size_t err_len);
