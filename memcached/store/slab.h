/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Slab memory: pages of 1 MiB, each cut into equal chunks of one size class. Private to
 * store/. Any thread; everything that changes is under the slab lock, the innermost one.
 *
 * One page at a time may be on its way to another class or to the pool of pages without one:
 * from slab_move_begin on, its chunks are neither taken nor put on the free list, and when all
 * are out slab_move_end hands it over.
 *
 * With lends_chunks, a class without pages has its items in chunks of a larger one, if that is not much
 * larger, while there are few pages for each class that has any: little memory is not spent on a page
 * for every class.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "store/mem.h"
#include "store/pages.h"
#include "store/store.h"

struct slab_class {
    uint32_t chunk_size;
    uint32_t chunks_per_page;
    struct item *free_list; /* doubly linked; the head's prev means nothing */
    uint64_t free_count;    /* on free_list */
    char *fresh; /* never used chunks of the newest cut page: no fault before use */
    uint32_t fresh_count;
    void **pages; /* oldest first */
    uint32_t page_count;
    uint32_t page_room; /* entries that fit in pages */
    uint32_t
        cut_count; /* pages[0..cut_count) have been cut; `fresh` is in the last one */
    /* As the chunks were taken and given back. What became longer or shorter in between is in
     * lru_class.recharged, and only the sum of both is above 0. */
    uint64_t requested_bytes;
    bool is_wanted; /* it has no page, there was none, and what serves is much larger */
};

/* The page on its way. */
struct slab_move {
    char *page; /* NULL: none */
    unsigned from, to;
    uint32_t chunk_size, chunks;
    uint32_t left;           /* chunks that are not out yet */
    bool gives_back;         /* a chunk: the next one that would be out */
    uint64_t serial;         /* of this move, or else of the last one */
    uint64_t inline_reclaim; /* free chunks that an allocation met; a counter */
};

/* Sizes up to it have their class in a table. */
#define SLAB_SMALL_MAX 8192u
#define SLAB_ALIGN 8u /* of chunks and their sizes */

struct slab {
    pthread_mutex_t lock;
    struct pages pages;
    uint32_t chunk_max;
    unsigned class_count; /* ids 1..class_count; the last one has chunk_max */
    bool whole_pages;
    bool can_reassign;
    struct slab_move move;
    bool lends;
    bool is_full;        /* the last time that a class wanted its first page */
    uint64_t most_bytes; /* that first pages beyond the limit may make it, with lending */
    /* Whose chunks the items of a class get; relaxed: written under the lock. */
    _Atomic uint8_t serving[STORE_CLASSES];
    _Atomic uint8_t
        small[SLAB_SMALL_MAX / SLAB_ALIGN + 1]; /* by the size in units of SLAB_ALIGN */
    struct slab_class classes[STORE_CLASSES];
};

/* False with a sentence in err when the sizes make no class table, or the memory that is to
 * be allocated at once is not there. */
must_check bool slab_init(struct slab *sl, const struct store_conf *conf, struct mem *mem,
                          char *err, size_t err_len);
void slab_fini(struct slab *sl);
/* store_check of store.h. */
must_check bool slab_check(const struct store_conf *conf, bool at_once, char *err,
                           size_t err_len);

/* The class whose chunks items of `bytes` (<= chunk_max) get. No lock: with lends_chunks it may be another
 * one at the next call. */
unsigned slab_class_of(const struct slab *sl, uint64_t bytes);

/* A chunk, layout byte cleared, of which `requested` bytes are accounted; NULL when the class
 * has none and may not, or by can_grow is not to, grow; another class may serve then. */
void *slab_take(struct slab *sl, unsigned class_id, uint32_t requested, bool can_grow);
/* Gives it back with the number that is accounted by now. */
void slab_give(struct slab *sl, unsigned class_id, void *chunk, uint32_t requested);

/* Pages of the pool are given back while more is charged. False: preallocated, or there are no
 * addresses for so much. */
must_check bool slab_set_limit(struct slab *sl, uint64_t bytes);
/* For a store that is put together again, before it is used: page `page` of the memory that
 * was given is the class's (0: the pool's) from now on. Each of its first pages comes once. */
must_check bool slab_adopt_page(struct slab *sl, unsigned class_id, uint32_t page);
/* Then: its first `cut_count` pages are in use, all chunks but the last `fresh_count`. */
void slab_adopt_cut(struct slab *sl, unsigned class_id, uint32_t cut_count,
                    uint32_t fresh_count);

/* No class could grow. */
bool slab_is_full(struct slab *sl);
/* No class could grow but for the pages of the pool. */
bool slab_has_reached_limit(struct slab *sl);

/* ---- the page on its way; one thread at a time ----------------------------------------- */

/* Takes the oldest page of *from (-1: some class but `to` that has two, returned in *from). */
must_check enum store_move_status slab_move_begin(struct slab *sl, int *from, int to);
/* Whether a page of this class, not its last one, is on its way. If one `wants_back` a chunk of it, the next
 * that becomes free is not out, but free. */
bool slab_is_losing(struct slab *sl, unsigned class_id, bool wants_back);
/* With the lock held: chunk `i` of the page leaves the free list. */
void slab_move_detach(struct slab *sl, uint32_t i);
/* The page stays in its class, with what it still has. */
void slab_move_cancel(struct slab *sl);
/* Hands the page over when all its chunks are out. False when they are not. */
must_check bool slab_move_end(struct slab *sl);

static inline void *
slab_move_chunk(const struct slab *sl, uint32_t i)
{
    return sl->move.page + (size_t)i * sl->move.chunk_size;
}

/* Whether one is on its way. */
bool slab_is_moving(struct slab *sl);
/* The class that its items are for, which have so many bytes in the mean. No lock. */
unsigned slab_best_class(const struct slab *sl, unsigned class_id, uint64_t mean);

/* The class that would serve the items of this one if it had no page; 0: none. With the lock held. */
unsigned slab_host(const struct slab *sl, unsigned class_id);
/* With the lock held. */
uint64_t slab_free_chunks(const struct slab *sl, unsigned class_id);
