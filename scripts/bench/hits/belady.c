/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Belady's rule ("A study of replacement algorithms for a virtual-storage computer",
 * 1966): what is used again last leaves, be it what came just now. Exact where all items
 * are of one size; of others a good ceiling, not the best that could be done. A heap by
 * the next use; what it says of keys that have been used since is passed over.
 */
#include "scripts/bench/hits/cache.h"

#include <stdlib.h>

#include "base/alloc.h"

enum { HELD = 1, HEAP_FIRST = 1024 };

struct entry {
    uint32_t at, key; /* next use */
};

struct heap {
    uint32_t *next_of; /* of each key */
    struct entry *entries;
    size_t count, room;
};

static void
start(struct cache *c)
{
    struct heap *h = c->state = alloc_zeroed(1, sizeof *h);
    must(c->next != NULL || c->keys == 0);
    h->next_of = alloc_zeroed(c->keys, sizeof *h->next_of);
}

static void
stop(struct cache *c)
{
    struct heap *h = c->state;
    free(h->next_of);
    free(h->entries);
}

static void
push(struct heap *h, struct entry e)
{
    if (h->count == h->room) {
        h->room = h->room == 0 ? HEAP_FIRST : 2 * h->room;
        h->entries = alloc_more(h->entries, h->room, sizeof *h->entries);
    }
    size_t i = h->count++;
    for (; i > 0 && h->entries[(i - 1) / 2].at < e.at; i = (i - 1) / 2) {
        h->entries[i] = h->entries[(i - 1) / 2];
    }
    h->entries[i] = e;
}

static struct entry
pop(struct heap *h)
{
    struct entry first = h->entries[0], last = h->entries[--h->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        child += child + 1 < h->count && h->entries[child + 1].at > h->entries[child].at;
        if (h->entries[child].at <= last.at) {
            break;
        }
        h->entries[i] = h->entries[child];
    }
    h->entries[i] = last;
    return first;
}

static void
use(struct cache *c, uint32_t key)
{
    struct heap *h = c->state;
    h->next_of[key] = c->next[c->now];
    push(h, (struct entry){.at = h->next_of[key], .key = key});
    cache_push(c, HELD, key);
}

static void
evict(struct cache *c)
{
    struct heap *h = c->state;
    struct entry e;
    do {
        e = pop(h);
    } while (!cache_has(c, e.key) || h->next_of[e.key] != e.at);
    cache_take(c, e.key);
}

const struct policy policy_belady = {
    .name = "belady",
    .resident = 1 << HELD,
    .start = start,
    .stop = stop,
    .use = use,
    .insert = use,
    .evict = evict,
};
