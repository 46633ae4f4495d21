/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "store/sizes.h"

#include "store/core.h"

/* The counts, and behind them which blocks are used. */
static size_t
mapped_bytes(const struct sizes *z)
{
    return z->buckets * sizeof(*z->counts) + z->blocks * sizeof(*z->is_used);
}

void
sizes_init(struct sizes *z, uint32_t item_max, const pthread_mutexattr_t *lock_attr)
{
    memset(z, 0, sizeof(*z));
    z->buckets = item_max / SIZES_BUCKET_BYTES + 1;
    z->blocks = z->buckets / SIZES_BLOCK + 1;
    PTHREAD_OK(pthread_mutex_init(&z->lock, lock_attr));
}

void
sizes_fini(struct sizes *z)
{
    mem_unmap((void *)(uintptr_t)z->counts, mapped_bytes(z));
    PTHREAD_OK(pthread_mutex_destroy(&z->lock));
}

static size_t
bucket_of(const struct sizes *z, uint64_t total)
{
    size_t bucket = (size_t)((total - 1) / SIZES_BUCKET_BYTES);

    must(bucket < z->buckets);
    return bucket;
}

void
sizes_count(struct sizes *z, struct item *it, uint64_t total)
{
    size_t bucket = bucket_of(z, total);
    _Atomic bool *is_used = &z->is_used[bucket / SIZES_BLOCK];

    item_set_layout(it, it->layout | ITEM_SIZED);
    atomic_fetch_add_explicit(&z->counts[bucket], 1, memory_order_relaxed);
    if (!atomic_load_explicit(is_used, memory_order_relaxed)) {
        atomic_store_explicit(is_used, true, memory_order_relaxed);
    }
}

void
sizes_discount(struct sizes *z, const struct item *it, uint64_t total)
{
    must(it->layout & ITEM_SIZED);
    atomic_fetch_sub_explicit(&z->counts[bucket_of(z, total)], 1, memory_order_relaxed);
}

bool
store_track_sizes(struct store *s, bool is_on)
{
    struct sizes *z = &s->sizes;
    bool is_done = s->conf.use_cas || !is_on;

    PTHREAD_OK(pthread_mutex_lock(&z->lock));
    if (is_done && is_on && z->counts == NULL) {
        z->counts = mem_map(&s->mem, mapped_bytes(z));
        z->is_used = (_Atomic bool *)(z->counts + z->buckets);
        is_done = z->counts != NULL;
    }
    if (is_done) {
        atomic_store_explicit(&z->is_on, is_on, memory_order_release);
    }
    PTHREAD_OK(pthread_mutex_unlock(&z->lock));
    return is_done;
}

bool
store_is_tracking_sizes(struct store *s)
{
    return atomic_load_explicit(&s->sizes.is_on, memory_order_relaxed);
}

/* The bucket at which there is something to look at next: blocks that have never had an item
 * are passed over, one for a look. */
static size_t
pass_unused(const struct sizes *z, size_t at, unsigned *looks)
{
    while (*looks > 0 && at < z->buckets &&
           !atomic_load_explicit(&z->is_used[at / SIZES_BLOCK], memory_order_relaxed)) {
        at = (at / SIZES_BLOCK + 1) * SIZES_BLOCK;
        --*looks;
    }
    return at;
}

bool
store_sizes_step(struct store *s, unsigned *bucket, unsigned looks,
                 store_size_visit *visit, void *ctx)
{
    struct sizes *z = &s->sizes;
    size_t at = *bucket;

    if (!atomic_load_explicit(&z->is_on, memory_order_acquire)) {
        return false;
    }
    for (; looks > 0 && at<z->buckets; at++, looks -= looks> 0) {
        at = pass_unused(z, at, &looks);
        if (looks == 0 || at >= z->buckets) {
            break;
        }
        uint64_t count = atomic_load_explicit(&z->counts[at], memory_order_relaxed);
        if (count > 0) {
            visit(ctx, (at + 1) * SIZES_BUCKET_BYTES, count);
            looks -= looks < STORE_SIZE_LOOKS ? looks : STORE_SIZE_LOOKS - 1;
        }
    }
    *bucket = (unsigned)at;
    return at < z->buckets;
}
