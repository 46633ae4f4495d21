/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The store's numbers: read under the locks of the counters, one class at a time.
 */
#include "store/store.h"

#include "store/core.h"

static uint64_t
bytes_of(const struct lru_class *c)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < STORE_LISTS; i++) {
        sum += c->lists[i].bytes;
    }
    return sum;
}

static void
add_lru_totals(struct lru_class *c, struct store_totals *out)
{
    uint64_t *sum = (uint64_t *)&out->count;

    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    out->item_bytes += bytes_of(c);
    out->curr_items += atomic_load_explicit(&c->number, memory_order_relaxed);
    out->direct_reclaims +=
        atomic_load_explicit(&c->direct_reclaims, memory_order_relaxed);
    for (size_t i = 0; i < sizeof out->count / sizeof *sum; i++) {
        sum[i] += ((const uint64_t *)&c->count)[i];
    }
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

static void
add_slab_totals(struct slab *sl, struct store_totals *out)
{
    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    out->limit_bytes = sl->pages.limit_bytes;
    out->malloced_bytes = sl->pages.malloced_bytes;
    for (unsigned i = 1; i <= sl->class_count; i++) {
        out->active_classes += sl->classes[i].page_count > 0;
    }
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
}

void
store_totals(struct store *s, struct store_totals *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        add_lru_totals(&s->lru.classes[i], out);
    }
    add_slab_totals(&s->slab, out);
    out->juggles = atomic_load_explicit(&s->lru.juggles, memory_order_relaxed);
    mover_totals(s, out);
    out->crawler_starts = atomic_load_explicit(&s->walk.starts, memory_order_relaxed);
    out->is_walking = atomic_load_explicit(&s->walk.is_running, memory_order_relaxed);
    out->malloc_fails = atomic_load_explicit(&s->mem.failures, memory_order_relaxed);
    out->hash_power = atomic_load_explicit(&s->table.power, memory_order_relaxed);
    /* Upstream's links have twice as many bytes. */
    out->hash_bytes = table_bytes(&s->table) * (s->conf.is_lean ? 1 : 2);
    out->is_expanding = atomic_load_explicit(&s->table.is_growing, memory_order_relaxed);
    PTHREAD_OK(pthread_mutex_lock(&s->flush.lock));
    out->flush_time = s->flush.latest;
    PTHREAD_OK(pthread_mutex_unlock(&s->flush.lock));
}

unsigned
store_class_count(const struct store *s)
{
    return s->slab.class_count;
}

uint64_t
store_class_items(const struct store *s, unsigned class_id)
{
    return atomic_load_explicit(&s->lru.classes[class_id].number, memory_order_relaxed);
}

static void
slab_class_stats(struct slab *sl, unsigned class_id, struct store_class_stats *out)
{
    const struct slab_class *c = &sl->classes[class_id];

    PTHREAD_OK(pthread_mutex_lock(&sl->lock));
    out->chunk_size = c->chunk_size;
    out->chunks_per_page = c->chunks_per_page;
    out->total_pages = c->page_count;
    out->total_chunks = (uint64_t)c->page_count * c->chunks_per_page;
    out->free_chunks = slab_free_chunks(sl, class_id);
    out->used_chunks = out->total_chunks - out->free_chunks;
    out->requested_bytes = c->requested_bytes;
    out->host = slab_host(sl, class_id);
    out->is_wanted = c->is_wanted;
    PTHREAD_OK(pthread_mutex_unlock(&sl->lock));
}

static void
lru_class_stats(struct lru_class *c, uint32_t now, struct store_class_stats *out)
{
    PTHREAD_OK(pthread_mutex_lock(&c->lock));
    out->requested_bytes += c->recharged;
    out->number = atomic_load_explicit(&c->number, memory_order_relaxed);
    out->item_bytes = bytes_of(c);
    for (unsigned i = 0; i < STORE_LISTS; i++) {
        out->list_number[i] = c->lists[i].number;
    }
    out->age = lru_idle(c->lists[STORE_LIST_COLD].tail, now);
    out->age_hot = lru_idle(c->lists[STORE_LIST_HOT].tail, now);
    out->age_warm = lru_idle(c->lists[STORE_LIST_WARM].tail, now);
    out->count = c->count;
    out->direct_reclaims =
        atomic_load_explicit(&c->direct_reclaims, memory_order_relaxed);
    out->losses = c->losses;
    PTHREAD_OK(pthread_mutex_unlock(&c->lock));
}

void
store_class_stats(struct store *s, unsigned class_id, uint32_t now,
                  struct store_class_stats *out)
{
    must(class_id >= 1 && class_id <= s->slab.class_count);
    memset(out, 0, sizeof(*out));
    slab_class_stats(&s->slab, class_id, out);
    lru_class_stats(&s->lru.classes[class_id], now, out);
}

void
store_reset_stats(struct store *s)
{
    for (unsigned i = 0; i < STORE_CLASSES; i++) {
        struct lru_class *c = &s->lru.classes[i];

        PTHREAD_OK(pthread_mutex_lock(&c->lock));
        memset(&c->count, 0, sizeof(c->count));
        atomic_store_explicit(&c->direct_reclaims, 0, memory_order_relaxed);
        PTHREAD_OK(pthread_mutex_unlock(&c->lock));
    }
    mover_reset_stats(s);
    atomic_store_explicit(&s->lru.juggles, 0, memory_order_relaxed);
    atomic_store_explicit(&s->walk.starts, 0, memory_order_relaxed);
    atomic_store_explicit(&s->mem.failures, 0, memory_order_relaxed);
}
