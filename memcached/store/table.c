/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/fail.h"

#define HASH_SHORT_MAX 128

_Static_assert(TABLE_SECRET_BYTES == XXH3_SECRET_DEFAULT_SIZE, "secret");

static size_t
array_bytes(uint64_t mask)
{
    return (size_t)(mask + 1) * sizeof(uint32_t);
}

/* So many that threads seldom meet, so few that they stay in a cache. Not more than buckets:
 * a stripe covers whole buckets. */
static unsigned
stripe_power(const struct store_conf *conf)
{
    static const struct {
        unsigned threads, power;
    } steps[] = {{2, 10}, {3, 11}, {4, 12}, {10, 13}, {20, 14}, {UINT32_MAX, 15}};
    unsigned i = 0;

    while (conf->threads > steps[i].threads) {
        i++;
    }
    return steps[i].power < conf->hash_power ? steps[i].power : conf->hash_power;
}

bool
table_init(struct table *t, const struct store_conf *conf, const struct link_range *range,
           struct mem *mem, char *err, size_t err_len)
{
    if (conf->hash_power < TABLE_POWER_MIN || conf->hash_power > TABLE_POWER_MAX) {
        return fail_because(err, err_len, "the hash power must be %d to %d",
                            TABLE_POWER_MIN, TABLE_POWER_MAX);
    }
    t->mem = mem;
    t->range = *range;
    t->seed = conf->hash_seed;
    t->can_grow = conf->can_grow_hash;
    t->stripe_mask = (UINT64_C(1) << stripe_power(conf)) - 1;
    struct generation *g = &t->gens[conf->hash_power];
    g->mask = (UINT64_C(1) << conf->hash_power) - 1;
    g->buckets = mem_map(mem, array_bytes(g->mask));
    t->stripes = mem_map(mem, (t->stripe_mask + 1) * sizeof(*t->stripes));
    if (g->buckets == NULL || t->stripes == NULL) {
        mem_unmap(g->buckets, array_bytes(g->mask));
        mem_unmap(t->stripes, (t->stripe_mask + 1) * sizeof(*t->stripes));
        return fail_because(err, err_len, "no memory for the hash table");
    }
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        PTHREAD_OK(pthread_mutex_init(&t->stripes[i].lock, conf->lock_attr));
    }
    XXH3_generateSecret_fromSeed(t->secret, t->seed);
    atomic_init(&g->pos, UINT64_MAX);
    atomic_init(&t->power, conf->hash_power);
    atomic_init(&t->is_growing, false);
    atomic_init(&t->current, g);
    return true;
}

void
table_fini(struct table *t)
{
    for (unsigned i = 0; i <= TABLE_POWER_MAX; i++) {
        mem_unmap(t->gens[i].buckets, array_bytes(t->gens[i].mask));
    }
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        PTHREAD_OK(pthread_mutex_destroy(&t->stripes[i].lock));
    }
    mem_unmap(t->stripes, (t->stripe_mask + 1) * sizeof(*t->stripes));
}

/* The same function: but loops for keys of more than so many bytes do not belong where all others are
 * hashed. */
static __attribute__((noinline)) uint64_t
hash_long(const struct table *t, const char *p, size_t len)
{
    must(len >= 1 && len <= STORE_KEY_MAX);
    return XXH3_64bits_withSecretandSeed(p, len, t->secret, sizeof(t->secret), t->seed);
}

uint64_t
table_hash(const struct table *t, const char *p, size_t len)
{
    if (unlikely(len - 1 >= HASH_SHORT_MAX)) {
        return hash_long(t, p, len);
    }
    return XXH3_64bits_withSecretandSeed(p, len, t->secret, sizeof(t->secret), t->seed);
}

uint64_t
table_bytes(const struct table *t)
{
    struct generation *g = atomic_load_explicit(&t->current, memory_order_acquire);
    uint64_t bytes = array_bytes(g->mask);

    return atomic_load_explicit(&t->is_growing, memory_order_relaxed) ? bytes + bytes / 2
                                                                      : bytes;
}

uint64_t
table_buckets(const struct table *t)
{
    return atomic_load_explicit(&t->current, memory_order_acquire)->mask + 1;
}

void
table_insert(struct table *t, struct item *it, uint64_t hash)
{
    uint32_t *bucket = table_bucket(t, hash);

    item_make_known(it);
    it->h_next = *bucket;
    *bucket = link_to(&t->range, it);
}

/* Where the link to an item in the table is. */
static uint32_t *
find_link(const struct table *t, const struct item *it, uint64_t hash)
{
    uint32_t *link = table_bucket(t, hash);
    const uint32_t wanted = link_to(&t->range, it);

    while (*link != wanted) {
        must(*link != 0);
        link = &link_item(&t->range, *link)->h_next;
    }
    return link;
}

void
table_remove(struct table *t, struct item *it, uint64_t hash)
{
    *find_link(t, it, hash) = it->h_next;
    it->h_next = 0;
}

void
table_relocate(struct table *t, const struct item *old, struct item *it, uint64_t hash)
{
    *find_link(t, old, hash) = link_to(&t->range, it);
}

static bool
start_growing(struct table *t, struct generation *g, uint64_t items)
{
    uint64_t buckets = g->mask + 1;
    struct generation *next = g + 1;

    if (!t->can_grow || g == &t->gens[TABLE_POWER_MAX] ||
        items <= buckets + buckets / 2) {
        return false;
    }
    next->mask = g->mask * 2 + 1;
    next->buckets = mem_map(t->mem, array_bytes(next->mask));
    if (next->buckets == NULL) {
        return false;
    }
    atomic_store_explicit(&next->pos, 0, memory_order_relaxed);
    atomic_store_explicit(&t->is_growing, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->power, 1, memory_order_relaxed);
    atomic_store_explicit(&t->current, next, memory_order_release);
    return true;
}

static void
move_bucket(struct table *t, struct generation *g, uint64_t old)
{
    table_lock(t, old);
    uint32_t link = g[-1].buckets[old];
    while (link != 0) {
        struct item *it = link_item(&t->range, link);
        uint32_t next = it->h_next;
        uint64_t hash = table_hash(t, item_key_slot(it), it->key_len);

        it->h_next = g->buckets[hash & g->mask];
        g->buckets[hash & g->mask] = link;
        link = next;
    }
    atomic_store_explicit(&g->pos, old + 1, memory_order_relaxed);
    table_unlock(t, old);
}

bool
table_step(struct table *t, uint64_t items, unsigned n)
{
    struct generation *g = atomic_load_explicit(&t->current, memory_order_relaxed);

    if (!atomic_load_explicit(&t->is_growing, memory_order_relaxed)) {
        if (!start_growing(t, g, items)) {
            return false;
        }
        g++;
    }
    uint64_t end = (g->mask >> 1) + 1;
    uint64_t pos = atomic_load_explicit(&g->pos, memory_order_relaxed);
    while (n-- > 0 && pos < end) {
        move_bucket(t, g, pos++);
    }
    if (pos == end) {
        /* The holder of a stripe saw its own buckets move. A reader without one may
         * still look here, but learns that they did. */
        mem_empty(g[-1].buckets, array_bytes(g[-1].mask));
        atomic_store_explicit(&t->is_growing, false, memory_order_relaxed);
    }
    return true;
}
