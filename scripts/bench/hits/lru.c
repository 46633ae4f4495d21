/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * LRU: what has not been used for longest leaves.
 */
#include "scripts/bench/hits/cache.h"

enum { LRU = 1 };

static void
use(struct cache *c, uint32_t key)
{
    cache_push(c, LRU, key);
}

static void
evict(struct cache *c)
{
    cache_take(c, cache_oldest(c, LRU));
}

const struct policy policy_lru = {
    .name = "lru",
    .resident = 1 << LRU,
    .use = use,
    .insert = use,
    .evict = evict,
};
