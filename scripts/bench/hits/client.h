/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Plays a recording to a server on one connection, in batches, as fast as it answers:
 * each get, and a set of what misses. Ends the program when anything fails.
 */
#pragma once

#include "scripts/bench/hits/recording.h"

enum client_protocol {
    CLIENT_MEMCACHED,
    CLIENT_REDIS,
};

struct client_score {
    uint64_t gets, hits, bytes, hit_bytes; /* as simulated caches are counted */
    uint64_t refused;                      /* sets, for want of memory */
};

void client_play(const struct recording *r, enum client_protocol protocol, int port,
                 struct client_score *score);
