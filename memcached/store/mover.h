/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Empties a page chunk by chunk, so that it can go to another class or to the pool. Private
 * to store/.
 *
 * What lies in a chunk is found out under the slab lock: a free one leaves the free list; of
 * an item the key is hashed, for the chunk can not be freed meanwhile. Then the stripe is
 * tried, and if the table still has an item at this address, it is that item, and it is ours
 * until the stripe is free again: its readers wait for the copy of one chunk.
 *
 * Owner of struct mover: the thread that calls store_move_step; the counters may be read and
 * zeroed by any thread (relaxed).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "store/automove.h"
#include "store/store.h"
#include "store/worth.h"

#define MOVER_PENDING_BITS 64
#define MOVER_PENDING (STORE_PAGE_BYTES / STORE_ITEM_HEADER / MOVER_PENDING_BITS + 1)

struct mover_counters {
    _Atomic uint64_t pages_moved, rescues, chunk_rescues, evictions_nomem, busy_items,
        busy_deletes, busy_nomem;
    _Atomic(const char *) last_busy; /* static text */
};

struct mover {
    uint64_t serial;                 /* of the move that the rest is about */
    uint32_t at;                     /* next chunk to look at in this round */
    uint32_t rounds;                 /* over the whole page */
    bool has_progress;               /* something left the page in this round */
    bool is_stuck;                   /* and something will not, without evictions */
    uint64_t pending[MOVER_PENDING]; /* bit per chunk that is not known to be out */
    struct mover_counters count;
};

/* The automover's window belongs to the caller of store_automove_step; conf and the request
 * of an eviction to any thread. */
struct automover {
    pthread_mutex_t lock; /* conf; innermost */
    struct store_automove conf;
    struct automove window;
    struct worth worth;
    uint32_t last_second;   /* that a sample was taken in */
    unsigned moves;         /* by worth, in that second */
    _Atomic unsigned level; /* of conf; relaxed, for evicting threads */
    /* Level 2: the class that an eviction wants a page for, 0: none. Relaxed: a hint. */
    _Atomic unsigned wanted_by;
};

struct store;

void mover_init(struct store *s, const pthread_mutexattr_t *lock_attr);
void mover_fini(struct store *s);
void mover_reset_stats(struct store *s);
void mover_totals(struct store *s, struct store_totals *out);

/* An eviction has taken place in the class; any lock may be held. */
void mover_note_eviction(struct store *s, unsigned class_id);
