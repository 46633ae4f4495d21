/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * SIEVE (Zhang et al., "SIEVE is simpler than LRU", NSDI'24): a queue in which nothing
 * moves, and a hand that goes from the oldest to the newest, forgets the uses that it
 * meets, and evicts what had none.
 */
#include "scripts/bench/hits/cache.h"

#include "base/alloc.h"

enum { QUEUE = 1 };

struct hand {
    uint32_t at; /* CACHE_NO_KEY: at the oldest */
};

static void
start(struct cache *c)
{
    struct hand *hand = c->state = alloc_zeroed(1, sizeof *hand);
    hand->at = CACHE_NO_KEY;
}

static void
use(struct cache *c, uint32_t key)
{
    c->nodes[key].uses = 1;
}

static void
insert(struct cache *c, uint32_t key)
{
    c->nodes[key].uses = 0;
    cache_push(c, QUEUE, key);
}

static void
leave(struct cache *c, uint32_t key)
{
    struct hand *hand = c->state;
    if (hand->at == key) {
        hand->at = c->nodes[key].newer;
    }
}

static void
evict(struct cache *c)
{
    struct hand *hand = c->state;
    uint32_t key = hand->at == CACHE_NO_KEY ? cache_oldest(c, QUEUE) : hand->at;
    hand->at = c->nodes[key].newer;
    if (c->nodes[key].uses > 0) {
        c->nodes[key].uses = 0;
    } else {
        cache_take(c, key);
    }
}

const struct policy policy_sieve = {
    .name = "sieve",
    .resident = 1 << QUEUE,
    .start = start,
    .use = use,
    .insert = insert,
    .evict = evict,
    .leave = leave,
};
