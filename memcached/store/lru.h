/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Four lists of items per class, with the class's counters; how items are put in, moved and taken
 * out, and how a class gets room for one more chunk. What moves, and what leaves, is decided by
 * policy.h. Private to store/.
 *
 * Everything in struct lru_class is under its lock, which may be taken with a stripe held.
 * The tails are peeked at without the stripe, but an item is removed or moved to another list
 * only under both.
 */
#pragma once

#include <pthread.h>
#include <stdalign.h>

#include "store/ghost.h"
#include "store/hotshare.h"
#include "store/item.h"
#include "store/shares.h"
#include "store/store.h"
#include "store/table.h"

#define LRU_TAIL_TRIES 5 /* tail entries looked at for a victim */
#define LRU_ATTEMPTS 10  /* to find room for a chunk */
#define LRU_PASSES 512u  /* entries of owners that keep theirs: then these give, too */
#define LRU_PASSES_A_PULL 128u /* then another list is tried */
#define LRU_ROUNDS                                                                       \
    32u /* beside a page on its way, before a chunk of it is taken back; two for an item */
#define LRU_LOST_ONE_IN 4u /* by their hash */

/* What is to be done with a tail entry. */
enum action {
    ACTION_KEEP,
    ACTION_RECLAIM,
    ACTION_EVICT,
    ACTION_TO_HEAD, /* of the same list */
    ACTION_AGAIN,   /* the same, and one read of it has been used up */
    ACTION_PASS,    /* the same, and nothing is noted: what else may go? */
    ACTION_TO_WARM,
    ACTION_TO_COLD,
};

/* What became of a tail entry; of the entries looked at, the largest counts. */
enum pull {
    PULL_NOTHING, /* nothing here to remove */
    PULL_BUSY,    /* what could be removed is in use just now */
    PULL_MOVED,
    PULL_COOLED, /* moved to COLD */
    PULL_RECLAIMED,
    PULL_EVICTED,
};

/* What to do with live items at the tail of a list. All zero: only dead ones go. */
struct pull_rule {
    bool picks;        /* s3fifo: the list that is to give, whatever the caller says */
    bool goes_on;      /* past what was moved, up to the first that went */
    bool evicts;       /* COLD */
    bool moves_active; /* between the lists, those read twice */
    bool forces; /* HOT and WARM: everything goes to COLD; s3fifo: whatever was read */
    bool caps; /* not for want of memory; s3fifo: what it passes over stays in HOT, too */
    bool has_bounds;    /* HOT and WARM: goes to COLD when the list has more bytes, or */
    uint64_t bytes_max; /* the entry is idle for longer. COLD: stays when WARM has more */
    double idle_max;
};

/* Whose items a search for room passes over, and how many of them at most: then none. */
struct pull_bypass {
    unsigned owners; /* a bit each */
    unsigned left;
};

/* The place in a list that is looked at piece by piece. Taking that item out moves the
 * cursor on. */
struct lru_cursor {
    struct item *at;         /* NULL: at the end */
    bool is_downwards;       /* towards the tail */
    struct lru_cursor *next; /* of the same list */
};

struct lru_list {
    struct item *head; /* flat: used last; else: came last */
    struct item *tail;
    uint64_t number;
    uint64_t bytes; /* of item totals */
    struct lru_cursor *cursors;
};

struct lru_class {
    alignas(TABLE_LINE_BYTES) pthread_mutex_t lock;
    struct lru_list lists[STORE_LISTS];
    /* Relaxed: written under the lock, read without it to see whether the table is full. */
    _Atomic uint64_t number;
    _Atomic uint64_t direct_reclaims; /* a counter; relaxed, without the lock */
    bool has_evicted;
    uint64_t ghosts;             /* that have been made */
    uint64_t losses;             /* in `lost` */
    struct hotshare_counts told; /* to hot_share, of those that it knows */
    uint64_t recharged; /* bytes that items have become longer where they are; wraps */
    struct store_counters count;
    struct share_use uses[STORE_OWNERS];
    _Atomic unsigned kept; /* relaxed; shares.c */
};

struct lru {
    /* Relaxed copies of conf for the request path: which of two rules an item meets first
     * does not matter. */
    _Atomic enum store_lru_policy policy;
    _Atomic unsigned warm_pct;
    _Atomic int64_t temp_ttl;
    /* Not in their line: store_juggle writes here. */
    alignas(TABLE_LINE_BYTES) _Atomic uint64_t juggles;
    pthread_mutex_t conf_lock;
    struct store_lru_conf conf;
    struct ghost ghost; /* s3fifo */
    struct ghost lost;  /* some of what left COLD: shows what a page more would bring */
    struct hotshare hot_share;
    struct shares shares;
    struct lru_class classes[STORE_CLASSES];
};

void lru_init(struct lru *l, const struct store_conf *conf, struct mem *mem);
void lru_fini(struct lru *l);

/* Begins and ends to look at a list, from its head (is_downwards) or its tail. The lock of the
 * class is held. */
void lru_cursor_open(struct lru_list *list, struct lru_cursor *cursor, bool is_downwards);
void lru_cursor_close(struct lru_list *list, struct lru_cursor *cursor);

/* Whether it is one of those that `lost` is about. */
static inline bool
lru_is_sample(uint64_t hash)
{
    return (hash >> GHOST_BITS) % LRU_LOST_ONE_IN == 0;
}

static inline enum store_lru_policy
lru_policy(const struct lru *l)
{
    return atomic_load_explicit(&l->policy, memory_order_relaxed);
}

/* The seconds that an entry, if any, has not been used. */
static inline uint32_t
lru_idle(const struct item *it, uint32_t now)
{
    return it != NULL && now > item_time(it) ? now - item_time(it) : 0;
}

/* With the item's stripe held. */
void lru_link(struct store *s, struct item *it, uint64_t hash, uint32_t now);
void lru_unlink(struct store *s, struct item *it);
/* lru_unlink(old) and lru_link(it). */
void lru_replace(struct store *s, struct item *old, struct item *it, uint64_t hash,
                 uint32_t now);
/* The item, of this class and hash, gets this value, of `total` bytes together with the item, but for its
 * bytes, and is linked as a new one is. It has no holder. */
void lru_renew(struct store *s, struct item *it, unsigned class_id,
               const struct store_value *value, uint64_t hash, uint64_t total,
               uint32_t now);
/* For a store that is put together again: these items, linked with each other, are the list. */
void lru_adopt(struct store *s, unsigned class_id, enum store_list list,
               struct item *head, struct item *tail, uint64_t number, uint64_t bytes);
/* Then: in a flat LRU all end up in COLD, those that were used last at its head. */
void lru_flatten(struct store *s);
/* To the head of its list, and used now. */
void lru_bump(struct store *s, struct item *it, uint32_t now);
/* `it` takes the place of old, of which it is a copy but for the links. */
void lru_relocate(struct store *s, const struct item *old, struct item *it);

/* With its class's lock held, too: to the head of that list. What made it move is forgotten: it has
 * to be read again. */
void lru_move_locked(struct store *s, struct item *it, enum store_list to);
/* The same: out of table and list. The caller drops its reference. */
void lru_remove_locked(struct store *s, struct item *it, uint64_t hash);

/* Removes dead items from the tail of a list, up to the first live one, with which it does as the
 * policy says to this rule; items that are to be passed over (NULL: none) make way to the next.
 * Looks at up to `tries` entries, beside what makes way. One stripe may be held. */
enum pull lru_pull(struct store *s, unsigned class_id, enum store_list list,
                   const struct pull_rule *ask, struct pull_bypass *bypass,
                   unsigned tries, uint32_t now);
/* A chunk of class `class_id`, freeing expired items of the lists of `victims`, and then those that the
 * policy says, if need be; NULL when there is no room. How many entries it looks at has a bound, whatever
 * is reserved and whichever page is on its way. One stripe may be held. */
void *lru_take_chunk(struct store *s, unsigned class_id, uint32_t requested,
                     unsigned victims, uint32_t now);
/* Makes room without a need of its own: dead items of the tail or one live one go, or one goes
 * to COLD first. False when there was nothing that could. No stripe is held. */
bool lru_evict(struct store *s, unsigned class_id, uint32_t now);
/* A linked item goes for another reason than its place in the list; the stripe is held. */
void lru_count_eviction(struct store *s, const struct item *it, uint32_t now);
/* Counts a refused allocation. */
void lru_count_oom(struct store *s, unsigned class_id);

uint64_t lru_number(const struct lru *l);
