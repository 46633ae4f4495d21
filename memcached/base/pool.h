/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Blocks of one size for input and output buffers, recycled last-in first-out so that the
 * one handed out next is still in the cache. One pool per worker, used by its thread only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/ctr.h"

#define POOL_BLOCK_BYTES 16384
#define POOL_SPARE_MAX 64 /* more free blocks than this go back to the system */

struct pool {
    void *spare;       /* singly linked through the blocks' first word */
    ctr_t spare_count; /* any thread may read, as `used` */
    ctr_t used;        /* blocks handed out */
};

void pool_init(struct pool *p);
/* All blocks must have been put back. */
void pool_fini(struct pool *p);
/* POOL_BLOCK_BYTES bytes aligned for any type, or NULL. */
void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *block);
