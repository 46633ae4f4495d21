/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP'23): a
 * small queue that most leave unused, a main queue in which what was used goes round
 * again, and a queue of the keys that left the small one: these enter the main queue at
 * once. A use only counts. Unlike the paper's, a delete of what would have stayed leaves
 * such a key, too: what is deleted and soon stored again, as by ETC's clients, would else
 * begin anew each time. The defaults are those chosen for the native profile, the paper's
 * are 0.1,3,2,0.9.
 */
#include "scripts/bench/hits/cache.h"

enum { SMALL = 1, MAIN, GHOST };
enum { SHARE, USES_MAX, USES_TO_STAY, GHOSTS }; /* parameters */

static void
use(struct cache *c, uint32_t key)
{
    struct node *n = &c->nodes[key];
    if (n->uses < c->params[USES_MAX]) {
        n->uses++;
    }
}

static void
insert(struct cache *c, uint32_t key)
{
    c->nodes[key].uses = 0;
    cache_push(c, c->nodes[key].list == GHOST ? MAIN : SMALL, key);
}

static void
leave(struct cache *c, uint32_t key)
{
    if (c->nodes[key].list == MAIN || c->nodes[key].uses >= c->params[USES_TO_STAY]) {
        cache_push(c, GHOST, key);
    }
}

static void
evict_small(struct cache *c)
{
    uint32_t key = cache_oldest(c, SMALL);
    bool stays = c->nodes[key].uses >= c->params[USES_TO_STAY];
    c->nodes[key].uses = 0;
    cache_push(c, stays ? MAIN : GHOST, key);
    double ghosts =
        c->params[GHOSTS] * (double)(c->lists[MAIN].count + c->lists[SMALL].count);
    while (c->lists[GHOST].count > ghosts) {
        cache_take(c, cache_oldest(c, GHOST));
    }
}

static void
evict_main(struct cache *c)
{
    uint32_t key = cache_oldest(c, MAIN);
    if (c->nodes[key].uses > 0) {
        c->nodes[key].uses--;
        cache_push(c, MAIN, key);
    } else {
        cache_take(c, key);
    }
}

static void
evict(struct cache *c)
{
    bool is_small_full =
        (double)c->lists[SMALL].bytes > c->params[SHARE] * (double)c->capacity;
    (is_small_full || c->lists[MAIN].count == 0 ? evict_small : evict_main)(c);
}

const struct policy policy_s3fifo = {
    .name = "s3fifo",
    .resident = 1 << SMALL | 1 << MAIN,
    .params =
        "share of the small queue, largest count of uses, uses in the small queue to "
        "stay, ghosts an item",
    .defaults = {[SHARE] = 0.05, [USES_MAX] = 3, [USES_TO_STAY] = 1, [GHOSTS] = 1},
    .use = use,
    .insert = insert,
    .evict = evict,
    .leave = leave,
};
