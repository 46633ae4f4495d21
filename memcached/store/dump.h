/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How far the listings of a class's items that clients have asked for have got; each is
 * made in steps. Places are few: taking an item out of a list updates the cursors there.
 * A listing that needs a place takes that of the one that has not gone on for longest.
 * Private to store/.
 */
#pragma once

#include <pthread.h>

#include "store/lru.h"
#include "store/store.h"

struct dump_place {
    uint32_t ticket; /* 0: free */
    struct lru_class *class;
    struct lru_list *list;
    struct lru_cursor cursor;
    uint64_t left;     /* items still to be listed */
    uint64_t step;     /* the number of its last one */
    uint32_t moved_at; /* when that was */
};

/* Everything is under the lock, which is taken before those of the lists. */
struct dumps {
    pthread_mutex_t lock;
    uint32_t tickets;
    uint64_t steps;
    struct dump_place places[STORE_DUMPS];
};

/* Ends those that have not gone on for a minute: their clients are slow or gone. */
void dumps_expire(struct dumps *d, uint32_t now);
