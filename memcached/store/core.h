/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * struct store as its own modules see it. Private to store/.
 */
#pragma once

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "store/item.h"
#include "store/lru.h"
#include "store/mem.h"
#include "store/slab.h"
#include "store/store.h"
#include "store/table.h"

/* Three borders; an item on the wrong side of any is gone. Set under the lock, read without
 * it, relaxed: who hears that a flush is done synchronised with the flusher already. */
struct flush {
    pthread_mutex_t lock;
    _Atomic uint64_t cas_below;  /* cas < this: gone */
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

    if (it->layout & ITEM_HAS_CAS &&
        item_cas_load(it) <
            atomic_load_explicit(&s->flush.cas_below, memory_order_relaxed)) {
        return true;
    }
    if (it->time < atomic_load_explicit(&s->flush.time_below, memory_order_relaxed)) {
        return true;
    }
    return at != 0 && at <= now && it->time <= at;
}

/* For readers. */
static inline bool
is_expired(const struct item *it, uint32_t now)
{
    uint32_t exptime = item_exptime(it);

    return exptime != STORE_NEVER && exptime <= now;
}
