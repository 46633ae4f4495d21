/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/pool.h"

#include "base/must.h"

void
pool_init(struct pool *p)
{
    *p = (struct pool){.spare = NULL};
}

void
pool_fini(struct pool *p)
{
    must(ctr_get(&p->used) == 0);
    while (p->spare != NULL) {
        void *block = p->spare;
        p->spare = *(void **)block;
        free(block);
    }
}

void *
pool_get(struct pool *p)
{
    void *block = p->spare;
    if (block != NULL) {
        p->spare = *(void **)block;
        ctr_add(&p->spare_count, (uint64_t)-1);
    } else {
        block = malloc(POOL_BLOCK_BYTES);
        if (block == NULL) {
            return NULL;
        }
    }
    ctr_add(&p->used, 1);
    return block;
}

void
pool_put(struct pool *p, void *block)
{
    ctr_add(&p->used, (uint64_t)-1);
    if (ctr_get(&p->spare_count) >= POOL_SPARE_MAX) {
        free(block);
        return;
    }
    *(void **)block = p->spare;
    p->spare = block;
    ctr_add(&p->spare_count, 1);
}
