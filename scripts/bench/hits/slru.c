/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Segmented LRU (Karedla, Love, Wherry, "Caching strategies to improve disk system
 * performance", 1994): what is used again moves from the probationary to the protected
 * segment, whose oldest moves back; what leaves is the oldest on probation.
 */
#include "scripts/bench/hits/cache.h"

enum { PROBATION = 1, PROTECTED };
enum { SHARE }; /* parameters */

static void
insert(struct cache *c, uint32_t key)
{
    cache_push(c, PROBATION, key);
}

static void
use(struct cache *c, uint32_t key)
{
    cache_push(c, PROTECTED, key);
    while ((double)c->lists[PROTECTED].bytes > c->params[SHARE] * (double)c->capacity) {
        cache_push(c, PROBATION, cache_oldest(c, PROTECTED));
    }
}

static void
evict(struct cache *c)
{
    cache_take(c, cache_oldest(c, c->lists[PROBATION].count > 0 ? PROBATION : PROTECTED));
}

const struct policy policy_slru = {
    .name = "slru",
    .resident = 1 << PROBATION | 1 << PROTECTED,
    .params = "share of the protected segment",
    .defaults = {[SHARE] = 0.8},
    .use = use,
    .insert = insert,
    .evict = evict,
};
