/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * ARC (Megiddo, Modha, "ARC: a self-tuning, low overhead replacement cache", FAST'03), in
 * bytes: LRU lists of what was used once and more often, each with a list of those that
 * have left it, whose return moves the border between the two.
 */
#include "scripts/bench/hits/cache.h"

#include "base/alloc.h"

enum { ONCE = 1, OFTEN, LEFT_ONCE, LEFT_OFTEN };

struct border {
    double once; /* bytes that ONCE is to have */
    bool is_often_back;
};

static void
start(struct cache *c)
{
    c->state = alloc_zeroed(1, sizeof(struct border));
}

static void
use(struct cache *c, uint32_t key)
{
    cache_push(c, OFTEN, key);
}

/* Bytes that the border moves by, when a ghost of `list` is back. */
static double
step(const struct cache *c, unsigned list, unsigned other, uint32_t bytes)
{
    double ratio = (double)c->lists[other].bytes / (double)c->lists[list].bytes;
    return bytes * (ratio > 1 ? ratio : 1);
}

static void
forget(struct cache *c)
{
    const struct list *l = c->lists;
    while (l[LEFT_ONCE].count > 0 && l[ONCE].bytes + l[LEFT_ONCE].bytes > c->capacity) {
        cache_take(c, cache_oldest(c, LEFT_ONCE));
    }
    while (l[LEFT_OFTEN].count > 0 &&
           c->used + l[LEFT_ONCE].bytes + l[LEFT_OFTEN].bytes > 2 * c->capacity) {
        cache_take(c, cache_oldest(c, LEFT_OFTEN));
    }
}

static void
insert(struct cache *c, uint32_t key)
{
    struct border *b = c->state;
    const struct node *n = &c->nodes[key];
    b->is_often_back = n->list == LEFT_OFTEN;
    if (n->list == LEFT_ONCE) {
        b->once += step(c, LEFT_ONCE, LEFT_OFTEN, n->bytes);
        b->once = b->once < (double)c->capacity ? b->once : (double)c->capacity;
    } else if (n->list == LEFT_OFTEN) {
        b->once -= step(c, LEFT_OFTEN, LEFT_ONCE, n->bytes);
        b->once = b->once > 0 ? b->once : 0;
    }
    cache_push(c, n->list == CACHE_NOWHERE ? ONCE : OFTEN, key);
    forget(c);
}

static void
evict(struct cache *c)
{
    const struct border *b = c->state;
    const struct list *l = c->lists;
    bool is_once = (double)l[ONCE].bytes > b->once ||
                   (b->is_often_back && (double)l[ONCE].bytes >= b->once);
    unsigned from = l[OFTEN].count == 0 || (is_once && l[ONCE].count > 0) ? ONCE : OFTEN;
    cache_push(c, from == ONCE ? LEFT_ONCE : LEFT_OFTEN, cache_oldest(c, from));
    forget(c);
}

const struct policy policy_arc = {
    .name = "arc",
    .resident = 1 << ONCE | 1 << OFTEN,
    .start = start,
    .use = use,
    .insert = insert,
    .evict = evict,
};
