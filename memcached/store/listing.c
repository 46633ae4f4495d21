/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an operator may want to see of the items: the newest of a class, and how large they
 * are.
 */
#include "store/sizes.h"

#include "store/core.h"

/* ---- items ---------------------------------------------------------------------------- */

/* The list's lock keeps its items linked; what visit looks at does not change meanwhile, or
 * is atomic. */
void
store_dump(struct store *s, unsigned class_id, bool hot_first, uint32_t limit,
           uint32_t now, store_visit *visit, void *ctx)
{
    struct lru_class *c = &s->lru.classes[class_id];
    bool is_hot = hot_first && lru_is_segmented(&s->lru);
    struct lru_list *list = &c->lists[is_hot ? STORE_LIST_HOT : STORE_LIST_COLD];
    uint32_t shown = 0;
    struct item *it;

    must(class_id < STORE_CLASSES);
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    it = list->head;
    for (unsigned i = 0; it != NULL && i < STORE_DUMP_LOOKS; i++, it = it->next) {
        if (is_flushed(s, it, now) || is_expired(it, now)) {
            continue;
        }
        if (!visit(ctx, it) || ++shown == limit) {
            break;
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

/* ---- sizes ---------------------------------------------------------------------------- */

void
sizes_init(struct sizes *z, uint32_t item_max, const pthread_mutexattr_t *lock_attr)
{
    memset(z, 0, sizeof(*z));
    z->buckets = item_max / SIZES_BUCKET_BYTES + 1;
    PTHREAD_OK(pthread_mutex_init(&z->lock, lock_attr));
}

void
sizes_fini(struct sizes *z)
{
    mem_unmap((void *)(uintptr_t)z->counts, z->buckets * sizeof(*z->counts));
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
    item_set_layout(it, it->layout | ITEM_SIZED);
    atomic_fetch_add_explicit(&z->counts[bucket_of(z, total)], 1, memory_order_relaxed);
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
        z->counts = mem_map(&s->mem, z->buckets * sizeof(*z->counts));
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

uint64_t *
store_sizes(struct store *s, size_t *n)
{
    struct sizes *z = &s->sizes;
    uint64_t *copy;

    *n = 0;
    PTHREAD_OK(pthread_mutex_lock(&z->lock));
    for (size_t i = 0; store_is_tracking_sizes(s) && i < z->buckets; i++) {
        if (atomic_load_explicit(&z->counts[i], memory_order_relaxed) != 0) {
            *n = i + 1;
        }
    }
    copy = mem_resize(&s->mem, NULL, (*n + 1) * sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < *n; i++) {
        copy[i] = atomic_load_explicit(&z->counts[i], memory_order_relaxed);
    }
    PTHREAD_OK(pthread_mutex_unlock(&z->lock));
    return copy;
}
