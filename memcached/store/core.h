/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * struct store as its own modules see it. Private to store/.
 */
#pragma once

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "store/dump.h"
#include "store/item.h"
#include "store/lru.h"
#include "store/mem.h"
#include "store/mover.h"
#include "store/policy.h"
#include "store/sizes.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/table.h"
#include "store/walk.h"

/* Three borders; an item on the wrong side of any is gone. Set under the lock, read
 * without it, relaxed: a thread that knows that a flush is done has synchronised with it
 * already. */
#define FLUSH_SPAN 4 /* seconds by which a thread's clock may lag behind the flusher's */

/* The epoch that the first flush of a second ended. */
struct flush_mark {
    uint32_t second;
    uint16_t epoch;
};

struct flush {
    pthread_mutex_t lock;
    struct flush_mark marks[FLUSH_SPAN]; /* by second modulo span */
    _Atomic uint16_t epoch; /* linked in another one: gone; counts immediate flushes */
    _Atomic uint64_t time_below; /* stored or used before this second: gone */
    _Atomic uint32_t at;         /* when reached, all used until then are gone; 0: none */
    uint32_t latest;             /* time of the latest flush, for statistics */
};

struct store {
    struct store_conf conf; /* constant; limit_bytes and sizes live in slab */
    struct mem mem;
    struct slab slab;
    struct table table;
    struct lru lru;
    struct flush flush;
    alignas(TABLE_LINE_BYTES) struct mover mover; /* readers look at flush */
    struct automover automover;
    struct sizes sizes;
    struct walk walk;
    struct dumps dumps;
    /* The last number given to a link. Relaxed: uniqueness is all it provides, the order on
     * one key comes from its stripe. On its own line, for every store writes it. */
    alignas(TABLE_LINE_BYTES) _Atomic uint64_t cas;
};

/* store_create whose n-th request for memory fails (0: none). */
struct store *store_create_failing(const struct store_conf *conf, long fail_in, char *err,
                                   size_t err_len);

static inline bool
is_flushed(const struct store *s, const struct item *it, uint32_t now)
{
    uint32_t at = atomic_load_explicit(&s->flush.at, memory_order_relaxed);
    uint32_t time = item_time(it);

    return it->epoch != atomic_load_explicit(&s->flush.epoch, memory_order_relaxed) ||
           time < atomic_load_explicit(&s->flush.time_below, memory_order_relaxed) ||
           (at != 0 && at <= now && time <= at);
}

/* For readers. */
static inline bool
is_expired(const struct item *it, uint32_t now)
{
    uint32_t exptime = item_exptime(it);

    return exptime != STORE_NEVER && exptime <= now;
}

/* For the LRU's tail, the crawler and the mover: a second later than for readers, for what a
 * reader in its last second refers to may stay. */
static inline bool
is_dead(const struct store *s, const struct item *it, uint32_t now)
{
    uint32_t exptime = item_exptime(it);

    return (exptime != STORE_NEVER && exptime < now) || is_flushed(s, it, now);
}

static inline uint64_t
hash_of(const struct store *s, struct key key)
{
    return table_hash(&s->table, key.p, key.len);
}

static inline struct key
item_key_of(const struct item *it)
{
    return (struct key){item_key_slot(it), it->key_len};
}

/* ---- with the stripe of the hash held ------------------------------------------------- */

/* Gives a linked item this CAS number, or the next one when it is 0. */
void core_set_cas(struct store *s, struct item *it, uint64_t cas);

/* The caller's reference becomes the table's. */
void core_link(struct store *s, struct item *it, uint64_t cas, uint64_t hash,
               uint32_t now);
/* The table's reference becomes the caller's, which drops it when the stripe is free:
 * there may be many chunks to give back. */
void core_unlink(struct store *s, struct item *it, uint64_t hash);
/* The same, and drops the reference. */
void core_drop(struct store *s, struct item *it, uint64_t hash);
/* core_unlink of old and core_link of it at once. */
void core_replace(struct store *s, struct item *old, struct item *it, uint64_t cas,
                  uint64_t hash, uint32_t now);

/* Page mover: `to`, a chunk as large as that of the head of the linked item, becomes the
 * item. The item must not be held. The old memory is the caller's. */
void core_relocate(struct store *s, struct item *it, struct item *to, uint64_t hash);

/* Removes an item that has expired or was flushed and says which. */
enum store_status core_remove_gone(struct store *s, struct item *it, uint64_t hash,
                                   uint32_t now);

/* Of what table_find found: OK and *item, or why not; what has gone is removed. */
static inline enum store_status
core_check(struct store *s, struct item *it, uint64_t hash, uint32_t now,
           struct item **item)
{
    *item = NULL;
    if (it == NULL) {
        return STORE_MISS;
    }
    if (unlikely(is_flushed(s, it, now) || is_expired(it, now))) {
        return core_remove_gone(s, it, hash, now);
    }
    *item = it;
    return STORE_OK;
}

static inline enum store_status
core_find(struct store *s, struct key key, uint64_t hash, uint32_t now,
          struct item **item)
{
    return core_check(s, table_find(&s->table, key, hash), hash, now, item);
}

/* Keeps the item from the end of its list. */
static inline void
core_bump(struct store *s, struct item *it, uint32_t now)
{
    if (unlikely(policy_is_hit_due(&s->lru, it, now))) {
        policy_hit(s, it, now);
    }
}

/* A read, or what counts as one. */
static inline void
core_use(struct store *s, struct item *it, uint32_t now)
{
    unsigned marks = item_marks(it);

    if ((marks & ITEM_FETCHED) == 0) {
        item_set_marks(it, marks | ITEM_FETCHED);
        if (lru_policy(&s->lru) == STORE_LRU_SEGMENTED) {
            return; /* the first read says nothing yet */
        }
    }
    core_bump(s, it, now);
}

/* What holds of an item when a read of it has nothing to write, not even that it was read: has these
 * marks, was used since then, and is neither flushed nor expired. Made once for several looks. */
struct core_rest {
    uint64_t since;
    uint32_t now;
    unsigned marks;
    uint16_t epoch;
};

static inline struct core_rest
core_rest(const struct store *s, uint32_t now)
{
    const struct flush *f = &s->flush;
    struct policy_rest policy = policy_rest(&s->lru, now);
    uint64_t since = atomic_load_explicit(&f->time_below, memory_order_relaxed);
    uint32_t at = atomic_load_explicit(&f->at, memory_order_relaxed);

    since = since < policy.since ? policy.since : since;
    if (unlikely(at != 0 && at <= now && since <= at)) {
        since = (uint64_t)at + 1;
    }
    return (struct core_rest){.since = since,
                              .now = now,
                              .marks = policy.marks | ITEM_FETCHED,
                              .epoch =
                                  atomic_load_explicit(&f->epoch, memory_order_relaxed)};
}

/* `it` may be a copy of the header. */
static inline bool
core_is_settled(const struct core_rest *rest, const struct item *it)
{
    _Static_assert(STORE_NEVER == 0, "one less is later than any time");
    return (item_marks(it) & rest->marks) == rest->marks &&
           item_time(it) >= rest->since && it->epoch == rest->epoch &&
           item_exptime(it) - 1 >= rest->now;
}
