/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Blocks of one size for input and output buffers, recycled last-in first-out so that the
 * one handed out next is still in the cache. One pool per worker, used by its thread only.
 *
 * Blocks are parts of mappings of the pool's own, POOL_REGION_BYTES each. Those that are free,
 * beyond some, wait on two lists for the thread in the background, which gives back to the system
 * what has not been wanted for a while:
 *
 *      spare --full--> warm --a second--> idle --a second--> cold: mapped, without memory
 *
 * The worker takes from all four, in this order. It never waits, and neither does the other.
 */
#pragma once

#include <stdatomic.h>

#include "base/ctr.h"
#include "base/must.h"

#define POOL_BLOCK_BYTES 16384
#define POOL_REGION_BYTES (64 * POOL_BLOCK_BYTES) /* the first block is its header */
#define POOL_SPARE_MAX 64 /* free blocks that a pool keeps, whatever happens */

/* A sanitizer knows the bounds of what malloc gives only: then blocks are not kept, and there
 * is nothing to give back. */
#ifdef __SANITIZE_ADDRESS__
#define POOL_USES_MALLOC true
#else
#define POOL_USES_MALLOC false
#endif

struct pool_region;

struct pool {
    void *spare;       /* singly linked through the blocks' first word */
    ctr_t spare_count; /* any thread may read, as `used` */
    ctr_t used;        /* blocks handed out */
    /* Likewise linked. The worker pushes to `warm` and pops from both; the thread in the background
     * takes a whole list, and puts one into `idle` when that is empty. So a block that was
     * seen at the head of a list does not come back there during a pop. Release and acquire: a list
     * comes with its links. */
    _Atomic(void *) warm;
    _Atomic(void *) idle;
    struct pool_region *regions; /* all; the worker's */
    struct pool_region *scan;    /* where the next cold block is looked for */
    _Atomic size_t
        cold_count; /* at least so many have their bit set; release and acquire */
};

void pool_init(struct pool *p);
/* All blocks must have been put back; pool_trim is not called any more. */
void pool_fini(struct pool *p);
/* POOL_BLOCK_BYTES bytes aligned for any type, or NULL. */
static inline void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *block);

/* One other thread, once a second: gives back the memory of blocks that have been free and not
 * wanted since the call before the last one. */
void pool_trim(struct pool *p);

/* ---- for pool_get --------------------------------------------------------------------- */

/* A block that is not spare, or NULL. */
void *pool_get_other(struct pool *p);

static inline void *
pool_get(struct pool *p)
{
    void *block = p->spare;
    if (likely(block != NULL)) {
        p->spare = *(void **)block;
        ctr_add(&p->spare_count, (uint64_t)-1);
    } else {
        block = pool_get_other(p);
        if (block == NULL) {
            return NULL;
        }
    }
    ctr_add(&p->used, 1);
    return block;
}
