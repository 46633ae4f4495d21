/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A walk over lists or over the hash table: the crawler and the dumps. One at a time. Private
 * to store/.
 *
 * Over a list the position is the list's cursor, the item that is next; taking that
 * item out of the list moves the cursor on; no more items are looked at than there were, for
 * new ones come in front. Over the table it is a bucket, as they were when the walk began,
 * and the last hash in it, for items of a bucket are visited in the order of their hashes:
 * whatever changes meanwhile, no key comes twice and none that stays is missed. When the
 * table has grown since, a bucket of then is several buckets of now.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "store/crawlplan.h"
#include "store/lru.h"
#include "store/store.h"

/* Everything is under the lock, which is taken before any other lock of the store. */
struct walk {
    pthread_mutex_t lock;
    bool is_open;
    bool by_table;
    bool is_crawl;
    struct crawlplan plan; /* of the next crawls */
    uint32_t ticket;
    uint32_t per_list;
    uint32_t opened_at;
    uint32_t moved_at; /* when it got on last */
    /* lists */
    uint8_t todo[STORE_CLASSES]; /* bit per list that is not done */
    unsigned class_id;           /* of the list under way, */
    enum store_list list;
    bool is_in_list; /* if there is one */
    struct lru_cursor cursor;
    unsigned tries; /* to get hold of the next item */
    uint64_t most;  /* items to look at: what comes later is not waited for */
    uint32_t list_start;
    uint64_t examined, reclaimed, unfetched;
    /* table */
    uint64_t bucket, buckets;
    bool has_last;
    uint64_t last_hash;
    /* Relaxed, for statistics. */
    _Atomic uint64_t starts;
    _Atomic bool is_running;
};
