/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Blocks: how many are out, which one comes next, how many are kept.
 */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ctr.h"
#include "base/rng.h"
#include "check_main.h"

#define BLOCKS (2 * POOL_SPARE_MAX)

static struct pool pool;

/* A kernel of larger pages takes the whole of each. */
static size_t page_bytes;

/* Sanitizers ask before they are ready for what they watch. */
__attribute__((no_sanitize("address", "thread", "undefined"))) int
getpagesize(void)
{
    return page_bytes != 0 ? (int)page_bytes : (int)sysconf(_SC_PAGESIZE);
}

int
madvise(void *p, size_t len, int advice)
{
    if (page_bytes != 0 && (uintptr_t)p % page_bytes != 0) {
        errno = EINVAL;
        return -1;
    }
    size_t more = page_bytes != 0 ? -len & (page_bytes - 1) : 0;
    return (int)syscall(SYS_madvise, p, len + more, advice);
}

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

FIXTURE(set_up, tear_down);

TEST(test_blocks_are_whole_and_aligned)
{
    char *block = pool_get(&pool);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % alignof(max_align_t), 0);
    memset(block, 0xa5, POOL_BLOCK_BYTES);
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    pool_put(&pool, block);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
}

TEST(test_last_in_first_out)
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

TEST(test_spare_blocks_are_bounded)
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

/* No block is handed out twice: each carries its own mark for as long as it is out. */
TEST(test_random_use)
{
    char *out[BLOCKS];
    unsigned count = 0;
    struct rng rng = rng_of(3, 0);
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

/* How many of the blocks have memory. */
static unsigned
count_resident(char *const *blocks, unsigned n)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned char pages[POOL_BLOCK_BYTES / 4096];
        ck_assert_int_eq(mincore(blocks[i], POOL_BLOCK_BYTES, pages), 0);
        count += pages[0] & 1;
    }
    return count;
}

static void
take(char **blocks, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        blocks[i] = pool_get(&pool);
        ck_assert_ptr_nonnull(blocks[i]);
        memset(blocks[i], 0xa5, POOL_BLOCK_BYTES);
    }
}

static void
give(char **blocks, unsigned n)
{
    while (n > 0) {
        pool_put(&pool, blocks[--n]);
    }
}

/* What is not wanted between two calls goes with the second; what is kept anyway stays. */
TEST(test_memory_is_given_back)
{
    char *blocks[4 * BLOCKS];
    unsigned n = POOL_USES_MALLOC ? 0 : 4 * BLOCKS;
    take(blocks, n);
    give(blocks, n);
    pool_trim(&pool);
    ck_assert_uint_eq(count_resident(blocks, n), n);
    pool_trim(&pool);
    ck_assert_uint_eq(count_resident(blocks, n), n > 0 ? POOL_SPARE_MAX : 0);
    /* and it is all there again when it is wanted */
    take(blocks, n);
    ck_assert_uint_eq(count_resident(blocks, n), n);
    give(blocks, n);
}

/* Blocks of a page that others are in use of. */
TEST(test_parts_of_a_page_stay)
{
    char *blocks[4 * BLOCKS], *free_ones[4 * BLOCKS];
    unsigned n = 4 * BLOCKS, n_free = 0, kept = 0;
    page_bytes = 4 * POOL_BLOCK_BYTES;
    take(blocks, n);
    for (unsigned i = 0; i < n; i++) {
        memset(blocks[i], 'x', POOL_BLOCK_BYTES);
        if ((uintptr_t)blocks[i] % page_bytes == 0) {
            free_ones[n_free++] = blocks[i];
        } else {
            blocks[kept++] = blocks[i];
        }
    }
    give(free_ones, n_free);
    pool_trim(&pool);
    pool_trim(&pool);
    for (unsigned i = 0; i < kept; i++) {
        ck_assert(blocks[i][0] == 'x' && blocks[i][POOL_BLOCK_BYTES - 1] == 'x');
    }
    give(blocks, kept);
    page_bytes = 0;
}

TEST(test_what_is_wanted_each_second_stays)
{
    char *blocks[4 * BLOCKS];
    unsigned n = POOL_USES_MALLOC ? 0 : 4 * BLOCKS;
    for (unsigned i = 0; i < 5; i++) {
        take(blocks, n);
        give(blocks, n);
        pool_trim(&pool);
        ck_assert_uint_eq(count_resident(blocks, n), n);
    }
    /* a quarter less is wanted from here on */
    for (unsigned i = 0; i < 2; i++) {
        char *some[3 * BLOCKS];
        unsigned fewer = n / 4 * 3;
        take(some, fewer);
        give(some, fewer);
        pool_trim(&pool);
        pool_trim(&pool);
        ck_assert_uint_lt(count_resident(blocks, n), n + (n == 0));
    }
}

struct trimmer {
    pthread_t thread;
    atomic_bool is_over;
};

static void *
trim_on(void *arg)
{
    struct trimmer *t = arg;
    while (!atomic_load(&t->is_over)) {
        pool_trim(&pool);
    }
    return NULL;
}

/* No block is lost or handed out twice while the other thread takes whatever is free. */
TEST(test_beside_the_other_thread)
{
    static char *out[16 * BLOCKS];
    struct trimmer t = {.is_over = false};
    unsigned count = 0;
    struct rng rng = rng_of(4, 0);
    ck_assert_int_eq(pthread_create(&t.thread, NULL, trim_on, &t), 0);
    for (unsigned i = 0; i < 300; i++) {
        unsigned wanted = (unsigned)rng_below(&rng, 16 * BLOCKS);
        for (; count < wanted; count++) {
            out[count] = pool_get(&pool);
            ck_assert_ptr_nonnull(out[count]);
            memcpy(out[count], &count, sizeof count);
        }
        while (count > wanted) {
            unsigned mark;
            memcpy(&mark, out[--count], sizeof mark);
            expect(mark == count);
            pool_put(&pool, out[count]);
        }
    }
    give(out, count);
    atomic_store(&t.is_over, true);
    ck_assert_int_eq(pthread_join(t.thread, NULL), 0);
}

TEST_ABORTS(test_missing_block_is_noticed)
{
    /* The child ends by must(): a block that never came back. */
    void *block = pool_get(&pool);
    ck_assert_ptr_nonnull(block);
    pool_fini(&pool);
}
