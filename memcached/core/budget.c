/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "core/budget.h"

static uint64_t
bytes_of(const struct pool *pool)
{
    return ctr_get(&pool->used) * POOL_BLOCK_BYTES;
}

bool
budget_allows_read(struct budget *b, const struct pool *pool)
{
    uint64_t used = bytes_of(pool);
    if (used == 0 || used + POOL_BLOCK_BYTES <= b->bytes) {
        return true; /* one block there is always: else the worker could do nothing */
    }
    ctr_add(&b->read_oom, 1);
    return false;
}

bool
budget_charge(struct budget *b, struct budget_share *share, const struct pool *pool,
              uint32_t replies, size_t bytes)
{
    share->replies += replies;
    share->produced += bytes;
    ctr_add(&b->replies, replies);
    /* A block may be begun that stays within the limit. */
    if (ctr_get(&b->replies) * BUDGET_REPLY_BYTES <= b->bytes / 2 &&
        bytes_of(pool) <= b->bytes + POOL_BLOCK_BYTES) {
        return true;
    }
    ctr_add(&b->reply_oom, 1);
    return false;
}

void
budget_release(struct budget *b, struct budget_share *share)
{
    ctr_add(&b->replies, -(uint64_t)share->replies);
    share->replies = 0;
}
