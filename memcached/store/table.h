/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Hash table of items with its striped locks. Private to store/.
 *
 * One array of buckets per power of two, a "generation". The table grows by publishing an
 * empty generation of twice the size and moving bucket after bucket of its predecessor:
 *
 *     predecessor  | moved ... moved | pos ........ still here |
 *     successor    | b  and  b + size/2  for every moved b     |
 *
 * A stripe covers whole buckets of every generation (low bits of the hash), and pos passes a
 * bucket only under its stripe. So the holder of a stripe finds its buckets in one place,
 * whichever generation it saw, and no thread ever waits for the whole table. A predecessor that
 * is empty gives its memory back, but not its addresses: a reader without a lock may be there.
 *
 * Locks: all functions that take a hash want its stripe held, except where noted.
 */
#pragma once

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/bytes.h"
#include "base/seq.h"
#include "store/item.h"
#include "store/item_link.h"
#include "store/mem.h"
#include "store/store.h"

#define TABLE_POWER_MIN 12
#define TABLE_POWER_MAX 32
#define TABLE_LINE_BYTES 64
#define TABLE_SECRET_BYTES 192

struct generation {
    uint32_t *buckets; /* links */
    uint64_t mask;
    /* Buckets of the predecessor that have moved here. Written by the growing thread under
     * the stripe of the moving bucket; relaxed, because the stripe orders it for the
     * threads that it concerns; others only compare it with their own bucket. */
    _Atomic uint64_t pos;
};

struct stripe {
    alignas(TABLE_LINE_BYTES) pthread_mutex_t lock;
    struct seq seq; /* odd while a writer has the lock; for readers without it (peek.h) */
};

struct table {
    /* Release by the growing thread, acquire by all: publishes the new array. */
    _Atomic(struct generation *) current;
    struct stripe *stripes;
    uint64_t stripe_mask;
    struct link_range range; /* in which its items lie */
    uint64_t seed;
    struct mem *mem;
    bool can_grow;
    _Atomic unsigned power; /* of current; relaxed, for statistics */
    _Atomic bool is_growing;
    struct generation gens[TABLE_POWER_MAX + 1]; /* by power; never reused */
    unsigned char secret[TABLE_SECRET_BYTES];
};

must_check bool table_init(struct table *t, const struct store_conf *conf,
                           const struct link_range *range, struct mem *mem, char *err,
                           size_t err_len);
void table_fini(struct table *t);

/* Any thread, no lock. */
uint64_t table_hash(const struct table *t, const char *p, size_t len);
uint64_t table_bytes(const struct table *t);
uint64_t table_buckets(const struct table *t);

static inline struct stripe *
table_stripe(const struct table *t, uint64_t hash)
{
    return &t->stripes[hash & t->stripe_mask];
}

/* The lock alone: for a reader, which writes nothing, or brackets that by the number itself. */
static inline struct stripe *
table_lock_to_read(struct table *t, uint64_t hash)
{
    struct stripe *stripe = table_stripe(t, hash);

    PTHREAD_OK(pthread_mutex_lock(&stripe->lock));
    return stripe;
}

static inline void
table_lock(struct table *t, uint64_t hash)
{
    seq_write_begin(&table_lock_to_read(t, hash)->seq);
}

/* False also when this very thread holds the stripe. */
static inline bool
table_try_lock(struct table *t, uint64_t hash)
{
    struct stripe *stripe = table_stripe(t, hash);

    if (pthread_mutex_trylock(&stripe->lock) != 0) {
        return false;
    }
    seq_write_begin(&stripe->seq);
    return true;
}

static inline void
table_unlock(struct table *t, uint64_t hash)
{
    struct stripe *stripe = table_stripe(t, hash);

    seq_write_end(&stripe->seq);
    PTHREAD_OK(pthread_mutex_unlock(&stripe->lock));
}

static inline uint32_t *
table_bucket(const struct table *t, uint64_t hash)
{
    struct generation *g = atomic_load_explicit(&t->current, memory_order_acquire);
    uint64_t old = hash & (g->mask >> 1);

    if (likely(old < atomic_load_explicit(&g->pos, memory_order_relaxed))) {
        return &g->buckets[hash & g->mask];
    }
    return &g[-1].buckets[old];
}

static inline struct item *
table_find(const struct table *t, struct key key, uint64_t hash)
{
    struct item *it = link_item(&t->range, *table_bucket(t, hash));

    while (it != NULL &&
           (it->key_len != key.len || !bytes_equal(item_key_slot(it), key.p, key.len))) {
        it = link_item(&t->range, it->h_next);
    }
    return it;
}

/* Whether an item at this address is in the hash's bucket; its memory is not looked at. */
static inline bool
table_has(const struct table *t, const struct item *it, uint64_t hash)
{
    const struct item *there = link_item(&t->range, *table_bucket(t, hash));

    while (there != NULL && there != it) {
        there = link_item(&t->range, there->h_next);
    }
    return there != NULL;
}

/* For a store that is put together again, by several threads and without locks: the item, in which
 * all is as if it had been inserted, is. */
static inline void
table_adopt(struct table *t, struct item *it, uint64_t hash)
{
    it->h_next = __atomic_exchange_n(table_bucket(t, hash), link_to(&t->range, it),
                                     __ATOMIC_RELAXED);
}

/* The first item of a bucket, likewise; `i` is below table_buckets. */
static inline struct item *
table_first(const struct table *t, uint64_t i)
{
    const struct generation *g = atomic_load_explicit(&t->current, memory_order_relaxed);

    return link_item(&t->range, g->buckets[i]);
}

void table_insert(struct table *t, struct item *it, uint64_t hash);
void table_remove(struct table *t, struct item *it, uint64_t hash);
/* `it` takes the place of old, whose h_next it has. */
void table_relocate(struct table *t, const struct item *old, struct item *it,
                    uint64_t hash);

/* One thread at a time, no lock held: starts growing when `items` are too many for the
 * buckets and moves up to n buckets. False when nothing is left to do. */
bool table_step(struct table *t, uint64_t items, unsigned n);
