/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One list of items per class, ordered by use, with the class's counters; and how a class
 * gets room for one more chunk. Private to store/.
 *
 * Everything in struct lru_class is under its lock, which may be taken with a stripe held.
 * The tail is peeked at without the stripe, but an item is removed only under both.
 */
#pragma once

#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>

#include "store/item.h"
#include "store/store.h"
#include "store/table.h"

#define LRU_BUMP_SECONDS 60 /* an item moves to the head at most this often */
#define LRU_TAIL_TRIES 5    /* tail entries looked at for a victim */
#define LRU_ATTEMPTS 10     /* to find room for a chunk */

/* Rows: name. They begin at 0 and go back there at a reset; struct store_class_stats and
 * struct store_totals tell what they mean. */
struct lru_counters {
    uint64_t total_items;
    uint64_t evicted, evicted_nonzero, evicted_time, evicted_unfetched;
    uint64_t reclaimed, expired_unfetched;
    uint64_t outofmemory, tailrepairs, reflocked;
};

struct lru_class {
    alignas(TABLE_LINE_BYTES) pthread_mutex_t lock;
    struct item *head; /* used last */
    struct item *tail;
    uint64_t bytes; /* of item totals */
    /* Relaxed: written under the lock, read without it to see whether the table is full. */
    _Atomic uint64_t number;
    struct lru_counters count;
};

struct lru {
    struct lru_class classes[STORE_CLASSES];
};

void lru_init(struct lru *l);
void lru_fini(struct lru *l);

/* With the item's stripe held. */
void lru_link(struct store *s, struct item *it, uint32_t now);
void lru_unlink(struct store *s, struct item *it);
/* lru_unlink(old) and lru_link(it). */
void lru_replace(struct store *s, struct item *old, struct item *it, uint32_t now);
/* Moves it to the head if its last use is long enough ago. */
void lru_use(struct store *s, struct item *it, uint32_t now);

/* A chunk of class `class_id`, freeing expired and then the least recently used items of the
 * list `victims` if need be; NULL when there is no room. One stripe may be held. */
void *lru_take_chunk(struct store *s, unsigned class_id, uint32_t requested,
                     unsigned victims, uint32_t now);
/* Counts a refused allocation. */
void lru_count_oom(struct store *s, unsigned class_id);

uint64_t lru_number(const struct lru *l);
