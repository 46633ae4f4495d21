/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How many items there are of each size, of those that were stored while it was on. An item
 * that is counted says so in its layout: what leaves is subtracted only where it was added.
 * Private to store/.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "store/item.h"
#include "store/mem.h"

#define SIZES_BUCKET_BYTES 32u
#define SIZES_BLOCK 512 /* buckets: a page of counts */

struct sizes {
    pthread_mutex_t lock; /* switching on and off */
    size_t buckets, blocks;
    /* Release and acquire: a thread that sees it on sees the counts, which stay when it
     * is off. */
    _Atomic bool is_on;
    _Atomic uint64_t *counts; /* relaxed sums */
    _Atomic bool *is_used;    /* blocks in which something has been counted; relaxed */
};

void sizes_init(struct sizes *z, uint32_t item_max, const pthread_mutexattr_t *lock_attr);
void sizes_fini(struct sizes *z);

void sizes_count(struct sizes *z, struct item *it, uint64_t total);
void sizes_discount(struct sizes *z, const struct item *it, uint64_t total);

static inline bool
sizes_is_on(const struct sizes *z)
{
    return atomic_load_explicit(&((struct sizes *)(uintptr_t)z)->is_on,
                                memory_order_acquire);
}

/* An item is being linked: no other thread sees it yet. */
static inline void
sizes_add(struct sizes *z, struct item *it, uint64_t total)
{
    if (unlikely(sizes_is_on(z))) {
        sizes_count(z, it, total);
    }
}

/* It is being unlinked. */
static inline void
sizes_subtract(struct sizes *z, const struct item *it, uint64_t total)
{
    if (unlikely(it->layout & ITEM_SIZED)) {
        sizes_discount(z, it, total);
    }
}
