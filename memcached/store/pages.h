/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Pages of 1 MiB for slab classes: cut one by one, below a limit, from an arena. That is a range of
 * addresses, of which each page becomes memory when it is taken; or it is memory from the start.
 * Pages that no class has any more are in the pool and go first. None is unmapped while the store
 * lives: readers without a lock may look anywhere in it.
 * Private to store/; all under the slab lock but for pages_empty.
 */
#pragma once

#include "store/item_link.h"
#include "store/mem.h"
#include "store/store.h"

struct pages {
    struct mem *mem;
    void (*on_map)(void *ctx, void *area, size_t bytes); /* as in store_conf */
    void *map_ctx;
    uint64_t limit_bytes;
    uint64_t malloced_bytes; /* charged, not necessarily mapped */
    bool reserves_least;     /* no addresses for a limit that is raised */
    bool can_trim;           /* the pool's pages are whole ones */
    void *pool; /* pages that belong to no class, linked through their first word */
    uint64_t pool_count;
    void *
        shelf; /* pages given back to the system, but for their addresses and first words */
    bool is_memory;     /* the arena is, */
    void *arena;        /* which is mapped, or was given, */
    size_t arena_bytes; /* 0: it was given */
    char *arena_next;   /* and its pages that were never used */
    uint64_t arena_left;
    struct link_range range; /* in which all pages lie */
};

void pages_init(struct pages *p, const struct store_conf *conf, struct mem *mem);
void pages_fini(struct pages *p);
/* How large units of links have to be, as a power of two. */
unsigned pages_shift(const struct store_conf *conf);
/* Addresses for as many pages as links reach, or if the system has not so many, as the limit allows,
 * or fewer. False: not for one. */
must_check bool pages_reserve(struct pages *p);
/* All that the limit allows at once: `memory`, or when that is NULL a mapping, in large pages
 * of the system's if it gives some. False: no memory. */
must_check bool pages_preallocate(struct pages *p, void *memory);
/* Whether there are addresses for a limit of so many bytes, and it may change. */
bool pages_can_limit(const struct pages *p, uint64_t limit_bytes);

/* One of the pool, or else a new one, for which so many bytes are charged; NULL when there is
 * none, or the limit is reached and it is not `needed` all the same. */
void *pages_take(struct pages *p, uint64_t charge, bool is_needed);
/* To the pool; its charge stays. */
void pages_give(struct pages *p, void *page);
/* For a store that is put together again: page `index` of the arena has been taken, and so many
 * bytes are charged for it. */
void *pages_adopt(struct pages *p, uint32_t index, uint64_t charge);

/* Cuts pages of the pool off it that the limit has no room for; NULL or a list of them, for
 * pages_empty without the lock, then pages_shelve. */
void *pages_trim(struct pages *p);
void pages_empty(void *list);
void pages_shelve(struct pages *p, void *list);
/* There is no page but those of the pool. */
bool pages_are_at_limit(const struct pages *p);
