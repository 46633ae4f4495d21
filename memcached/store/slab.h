/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Slab memory: pages of 1 MiB, each cut into equal chunks of one size class. Private to
 * store/. Any thread; everything that changes is under the slab lock, the innermost one.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/mem.h"
#include "store/store.h"

struct slab_class {
    uint32_t chunk_size;
    uint32_t chunks_per_page;
    struct item *free_list;
    uint64_t free_count; /* on free_list */
    char *fresh;         /* never used chunks of the newest page: no fault before use */
    uint32_t fresh_count;
    void **pages; /* oldest first */
    uint32_t page_count;
    uint32_t page_room; /* entries that fit in pages */
    uint64_t requested_bytes;
};

struct slab {
    pthread_mutex_t lock;
    struct mem *mem;
    uint64_t limit_bytes;
    uint64_t malloced_bytes; /* charged, not necessarily mapped */
    uint32_t chunk_max;
    unsigned class_count; /* ids 1..class_count; the last one has chunk_max */
    bool whole_pages;
    struct slab_class classes[STORE_CLASSES];
};

/* False with a sentence in err when the sizes make no class table. */
must_check bool slab_init(struct slab *sl, const struct store_conf *conf, struct mem *mem,
                          char *err, size_t err_len);
void slab_fini(struct slab *sl);

/* Smallest class whose chunks hold `bytes` (<= chunk_max). Sizes never change: no lock. */
unsigned slab_class_of(const struct slab *sl, uint64_t bytes);

/* A chunk, layout byte cleared, of which `requested` bytes are accounted; NULL when the class
 * has none and may not grow. */
void *slab_take(struct slab *sl, unsigned class_id, uint32_t requested);
/* Gives it back with the number it was accounted with. */
void slab_give(struct slab *sl, unsigned class_id, void *chunk, uint32_t requested);

void slab_set_limit(struct slab *sl, uint64_t bytes);
