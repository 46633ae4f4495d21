/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Blocks: how many are out, which one comes next, how many are kept.
 */
#include "base/pool.h"

#include <stdalign.h>

#include "base/ctr.h"
#include "base/rng.h"
#include "check_unit.h"

#define BLOCKS (2 * POOL_SPARE_MAX)

static struct pool pool;

static void
set_up(void)
{
    pool_init(&pool);
}

static void
tear_down(void)
{
    pool_fini(&pool);
    ck_assert_ptr_null(pool.spare);
}

START_TEST(test_blocks_are_whole_and_aligned)
{
    char *block = pool_get(&pool);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % alignof(max_align_t), 0);
    memset(block, 0xa5, POOL_BLOCK_BYTES);
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    pool_put(&pool, block);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
}
END_TEST

START_TEST(test_last_in_first_out)
{
    void *a = pool_get(&pool);
    void *b = pool_get(&pool);
    ck_assert_ptr_ne(a, b);
    pool_put(&pool, a);
    pool_put(&pool, b);
    ck_assert_ptr_eq(pool_get(&pool), b);
    ck_assert_ptr_eq(pool_get(&pool), a);
    pool_put(&pool, b);
    pool_put(&pool, a);
}
END_TEST

START_TEST(test_spare_blocks_are_bounded)
{
    void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = pool_get(&pool);
        ck_assert_ptr_nonnull(blocks[i]);
        ck_assert_uint_eq(ctr_get(&pool.used), i + 1);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        pool_put(&pool, blocks[i]);
        ck_assert_uint_le(pool.spare_count, POOL_SPARE_MAX);
    }
    ck_assert_uint_eq(pool.spare_count, POOL_SPARE_MAX);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
}
END_TEST

/* No block is handed out twice: each carries its own mark for as long as it is out. */
START_TEST(test_random_use)
{
    char *out[BLOCKS];
    unsigned count = 0;
    struct rng rng;
    rng_init(&rng, 3, 0);
    for (int i = 0; i < 20000; i++) {
        bool gets = count == 0 || (count < BLOCKS && rng_below(&rng, 2) == 0);
        if (gets) {
            char *block = pool_get(&pool);
            ck_assert_ptr_nonnull(block);
            memset(block, (int)(count & 0xff), 64);
            memset(block + POOL_BLOCK_BYTES - 64, (int)(count & 0xff), 64);
            out[count++] = block;
        } else {
            unsigned last = --count;
            expect((unsigned char)out[last][63] == (last & 0xff));
            expect((unsigned char)out[last][POOL_BLOCK_BYTES - 1] == (last & 0xff));
            pool_put(&pool, out[last]);
        }
        expect(ctr_get(&pool.used) == count);
        expect(pool.spare_count <= POOL_SPARE_MAX);
    }
    while (count > 0) {
        pool_put(&pool, out[--count]);
    }
}
END_TEST

START_TEST(test_missing_block_is_noticed)
{
    /* The child ends by must(): a block that never came back. */
    void *block = pool_get(&pool);
    ck_assert_ptr_nonnull(block);
    pool_fini(&pool);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("pool");
    TCase *tc = tcase_create("pool");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, test_blocks_are_whole_and_aligned);
    tcase_add_test(tc, test_last_in_first_out);
    tcase_add_test(tc, test_spare_blocks_are_bounded);
    tcase_add_test(tc, test_random_use);
    tcase_add_test_raise_signal(tc, test_missing_block_is_noticed, SIGABRT);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
