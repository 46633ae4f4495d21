/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the buffers of a worker may take: limits to the reply and to the block.
 */
#include "core/budget.h"

#include "check_main.h"

#define BLOCKS 4

static struct pool pool;
static struct budget budget;
static struct budget_share share, other;

static void
set_up(void)
{
    pool_init(&pool);
    budget = (struct budget){.bytes = BLOCKS * POOL_BLOCK_BYTES};
    share = other = (struct budget_share){0};
}

static void
tear_down(void)
{
    pool_fini(&pool);
}

static bool
charge(struct budget_share *who, uint32_t replies)
{
    return budget_charge(&budget, who, &pool, replies, 10);
}

FIXTURE(set_up, tear_down);

TEST(half_is_for_replies)
{
    uint32_t most = BLOCKS * POOL_BLOCK_BYTES / 2 / BUDGET_REPLY_BYTES;
    ck_assert(charge(&share, most - 1));
    ck_assert(charge(&other, 1));
    ck_assert_uint_eq(ctr_get(&budget.reply_oom), 0);
    ck_assert(!charge(&other, 1));
    ck_assert_uint_eq(ctr_get(&budget.reply_oom), 1);
    budget_release(&budget, &share);
    ck_assert_uint_eq(ctr_get(&budget.replies), 2);
    ck_assert(charge(&share, 1));
    budget_release(&budget, &share);
    budget_release(&budget, &other);
    budget_release(&budget, &other);
    ck_assert_uint_eq(ctr_get(&budget.replies), 0);
}

TEST(bytes_are_those_of_the_request_under_way)
{
    ck_assert(charge(&share, 1) && charge(&share, 0));
    ck_assert_uint_eq(share.produced, 20);
    share.produced = 0;
    ck_assert(charge(&share, 1));
    ck_assert_uint_eq(share.produced, 10);
    ck_assert_uint_eq(share.replies, 2);
}

/* Readers may take every block, writers one more to go on with what has begun. */
TEST(blocks_are_bounded)
{
    void *block[BLOCKS + 2];
    for (unsigned i = 0; i < BLOCKS; i++) {
        ck_assert(budget_allows_read(&budget, &pool));
        block[i] = pool_get(&pool);
    }
    ck_assert(!budget_allows_read(&budget, &pool));
    ck_assert_uint_eq(ctr_get(&budget.read_oom), 1);
    ck_assert(charge(&share, 1));
    block[BLOCKS] = pool_get(&pool);
    ck_assert(charge(&share, 1));
    block[BLOCKS + 1] = pool_get(&pool);
    ck_assert(!charge(&share, 1));
    for (unsigned i = 0; i < BLOCKS + 2; i++) {
        pool_put(&pool, block[i]);
    }
    ck_assert(budget_allows_read(&budget, &pool));
}

TEST(one_block_is_always_there)
{
    budget.bytes = 1;
    ck_assert(budget_allows_read(&budget, &pool));
    void *block = pool_get(&pool);
    ck_assert(!budget_allows_read(&budget, &pool));
    pool_put(&pool, block);
}
