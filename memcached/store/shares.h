/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Shares of the memory. Each item has an owner. An owner that has no more than what is reserved for
 * it keeps its items: where room is made they are passed over, and the first one of another owner
 * goes. So what an owner does not use is lent, and comes back to it an item at a time, as it stores.
 * An owner with a ceiling lets items of its own go beyond that.
 *
 * A reserve is a part of the bytes of all items, so some owner always has more than its own. What
 * each has is summed up once for a few evictions of a class. Private to store/.
 *
 * Any thread. What is counted is written under the lock of the class.
 */
#pragma once

#include <stdatomic.h>

#include "store/ghost.h"
#include "store/store.h"

struct lru;

#define SHARES_EVERY ((1u << STORE_OWNERS) - 1) /* a bit for each owner */

/* What an owner has in a class. Bytes and items are read without the lock, too: relaxed. */
struct share_use {
    _Atomic uint64_t bytes; /* of item totals */
    _Atomic uint64_t items;
    uint64_t evicted, would_hit;
};

/* Relaxed: which of two rules an item meets first does not matter. */
struct shares {
    _Atomic bool is_on;
    _Atomic unsigned capped; /* a bit for each owner that has a ceiling */
    _Atomic unsigned per_mille[STORE_OWNERS];
    _Atomic uint64_t limit_bytes; /* of which a ceiling is a part */
    struct ghost
        gone[STORE_OWNERS]; /* what was evicted last, a tenth as many as there are */
};

/* Without memory there is no `would_hit`. */
void shares_set(struct shares *sh, const struct store_shares *conf, struct mem *mem);
void shares_fini(struct shares *sh);

static inline bool
shares_are_on(const struct shares *sh)
{
    return atomic_load_explicit(&sh->is_on, memory_order_relaxed);
}

static inline bool
shares_have_caps(const struct shares *sh)
{
    return atomic_load_explicit(&sh->capped, memory_order_relaxed) != 0;
}

static inline bool
shares_cap(const struct shares *sh, unsigned owner)
{
    return (atomic_load_explicit(&sh->capped, memory_order_relaxed) >> owner & 1) != 0;
}

static inline void
shares_add_to(_Atomic uint64_t *count, uint64_t n)
{
    uint64_t before = atomic_load_explicit(count, memory_order_relaxed);

    atomic_store_explicit(count, before + n, memory_order_relaxed);
}

/* The lock of the class is held, also of the two below. Less: the same number, negative. */
static inline void
shares_add(struct share_use *use, uint64_t bytes, uint64_t items)
{
    shares_add_to(&use->bytes, bytes);
    shares_add_to(&use->items, items);
}

/* An item of that owner is evicted. */
void shares_note_eviction(struct lru *l, struct share_use *use, unsigned owner,
                          uint64_t hash);
/* One is stored under a key that had none. */
static inline void
shares_note_new(struct shares *sh, struct share_use *use, unsigned owner, uint64_t hash)
{
    use->would_hit += ghost_take(&sh->gone[owner], hash);
}

/* The owners whose items are to be passed over in this class now, a bit each; 0: none, or there is
 * little else in it. */
unsigned shares_keep(struct store *s, unsigned class_id);
/* Whether most of what is in the class would be passed over. */
bool shares_keep_most(const struct store *s, unsigned class_id);
/* Whether the owner has more than its ceiling. */
bool shares_is_over(const struct store *s, unsigned owner);
/* The class in which it has most, but for one; that one: it has nothing else. */
unsigned shares_largest(const struct store *s, unsigned owner, unsigned but);
