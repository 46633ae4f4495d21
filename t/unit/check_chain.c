/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The output chain against a plain string of expected bytes and a list of the owners that
 * are still needed: each is released once, and only behind its last byte.
 */
#include "base/chain.h"

#include "base/ctr.h"
#include "base/rng.h"
#include "check_main.h"

#define OWNERS_MAX 4096
#define IOV_MAX_RUNS 64

struct owner {
    char *p;
    size_t end; /* place in the stream behind its last byte */
    unsigned released;
};

static struct pool pool;
static struct chain chain;
static struct chain_env env;

/* The model. */
static struct text stream;
static size_t consumed;
static struct owner owners[OWNERS_MAX];
static unsigned owner_count;

static void
release(void *ctx, void *owner)
{
    struct owner *o = owner;
    ck_assert_ptr_eq(ctx, &pool);
    ck_assert_uint_eq(o->released, 0);
    o->released++;
    free(o->p);
    o->p = NULL; /* a run that outlives its owner shows in the sanitizer */
}

static void
set_up(void)
{
    pool_init(&pool);
    chain = (struct chain){.first = NULL};
    env = (struct chain_env){.pool = &pool, .release = release, .ctx = &pool};
}

static void
check_all_released(void)
{
    for (unsigned i = 0; i < owner_count; i++) {
        ck_assert_uint_eq(owners[i].released, 1);
    }
}

static void
tear_down(void)
{
    chain_clear(&chain, &env);
    ck_assert_uint_eq(chain.bytes, 0);
    check_all_released();
    pool_fini(&pool);
    text_free(&stream);
}

static void
copy(const void *p, size_t n)
{
    ck_assert(chain_copy(&chain, &env, p, n));
    text_add(&stream, p, n);
}

static void
borrow(const void *p, size_t n)
{
    ck_assert_uint_lt(owner_count, OWNERS_MAX);
    struct owner *o = &owners[owner_count++];
    *o = (struct owner){.p = exact_copy(p, n)};
    ck_assert(chain_borrow(&chain, &env, o->p, n, o));
    text_add(&stream, p, n);
    o->end = stream.len;
}

/* A value in two runs of which the second one holds the reference. */
static void
borrow_in_two(const void *p, size_t n, size_t cut)
{
    struct owner *o = &owners[owner_count++];
    *o = (struct owner){.p = exact_copy(p, n)};
    ck_assert(chain_borrow(&chain, &env, o->p, cut, NULL));
    ck_assert(chain_borrow(&chain, &env, o->p + cut, n - cut, o));
    text_add(&stream, p, n);
    o->end = stream.len;
}

static void
reserve(const void *p, size_t asked, size_t taken)
{
    char *to = chain_reserve(&chain, &env, asked);
    ck_assert_ptr_nonnull(to);
    memset(to, '#', asked); /* all of it is ours to write */
    memcpy(to, p, taken);
    chain_commit(&chain, taken);
    text_add(&stream, p, taken);
}

/* Owners still needed are held, those behind the mark are not. */
static void
check_owners(void)
{
    for (unsigned i = 0; i < owner_count; i++) {
        if (owners[i].end > consumed) {
            expect(owners[i].released == 0);
        } else if (owners[i].end < consumed) {
            expect(owners[i].released == 1);
        }
    }
}

/* The runs at the front are the stream's next bytes, within both bounds. */
static size_t
check_iov(unsigned max, size_t max_bytes)
{
    struct iovec iov[IOV_MAX_RUNS];
    unsigned runs = chain_iov(&chain, iov, max, max_bytes);
    size_t at = consumed;
    expect(runs <= max);
    for (unsigned i = 0; i < runs; i++) {
        expect(iov[i].iov_len > 0);
        expect(at + iov[i].iov_len <= stream.len);
        expect(memcmp(iov[i].iov_base, stream.p + at, iov[i].iov_len) == 0);
        at += iov[i].iov_len;
    }
    size_t n = at - consumed;
    expect(n <= max_bytes);
    if (runs < max) {
        size_t left = stream.len - consumed;
        expect(n == (left < max_bytes ? left : max_bytes));
    }
    return n;
}

static void
check_state(void)
{
    expect(chain.bytes == stream.len - consumed);
    check_owners();
}

static void
consume(size_t n)
{
    chain_consume(&chain, &env, n);
    consumed += n;
    check_state();
    for (unsigned i = 0; chain.bytes == 0 && i < owner_count; i++) {
        expect(owners[i].released == 1); /* those without bytes, too */
    }
}

/* Sends the rest in pieces of at most 1000 bytes and 3 runs. */
static void
drain(void)
{
    while (chain.bytes > 0) {
        size_t n = check_iov(3, 1000);
        ck_assert_uint_gt(n, 0);
        consume(n);
    }
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
}

FIXTURE(set_up, tear_down);

TEST(test_empty)
{
    struct iovec iov[2];
    ck_assert_uint_eq(chain_iov(&chain, iov, 2, 100), 0);
    chain_consume(&chain, &env, 0);
    chain_clear(&chain, &env);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    copy("", 0);
    ck_assert_uint_eq(chain.bytes, 0);
}

TEST(test_small_copies_are_one_run)
{
    struct iovec iov[2];
    copy("VALUE ", 6);
    copy("key", 3);
    reserve("\r\nrest", 100, 2);
    copy("END\r\n", 5);
    ck_assert_uint_eq(chain_iov(&chain, iov, 2, SIZE_MAX), 1);
    ck_assert_uint_eq(iov[0].iov_len, 16);
    ck_assert_mem_eq(iov[0].iov_base, "VALUE key\r\nEND\r\n", 16);
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    drain();
}

TEST(test_borrowed_between_copies)
{
    struct iovec iov[4];
    copy("head ", 5);
    borrow("borrowed", 8);
    copy(" tail", 5);
    ck_assert_uint_eq(chain_iov(&chain, iov, 4, SIZE_MAX), 3);
    ck_assert_ptr_eq(iov[1].iov_base, owners[0].p);
    ck_assert_uint_eq(chain_iov(&chain, iov, 2, SIZE_MAX), 2);
    ck_assert_uint_eq(chain_iov(&chain, iov, 4, 6), 2);
    ck_assert_uint_eq(iov[1].iov_len, 1);
    ck_assert_uint_eq(chain_iov(&chain, iov, 4, 0), 0);
    ck_assert_uint_eq(chain_iov(&chain, iov, 0, 10), 0);
    consume(12); /* all of it but one byte */
    ck_assert_uint_eq(owners[0].released, 0);
    consume(1);
    ck_assert_uint_eq(owners[0].released, 1);
    consume(5);
}

TEST(test_reference_of_the_last_run_covers_the_first)
{
    borrow_in_two("0123456789", 10, 4);
    copy("x", 1);
    consume(4);
    ck_assert_uint_eq(owners[0].released, 0);
    check_iov(4, SIZE_MAX);
    consume(5);
    ck_assert_uint_eq(owners[0].released, 0);
    consume(1);
    ck_assert_uint_eq(owners[0].released, 1);
    drain();
}

TEST(test_pieces_without_bytes)
{
    struct iovec iov[4];
    reserve("", 10, 0);
    borrow("", 0);
    copy("a", 1);
    borrow("", 0);
    reserve("", CHAIN_RESERVE_MAX, 0);
    copy("b", 1);
    borrow("", 0);
    ck_assert_uint_eq(chain_iov(&chain, iov, 4, SIZE_MAX), 2);
    consume(0);
    consume(1);
    consume(1);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    check_all_released();
}

TEST(test_clearing_releases_all)
{
    char bytes[3000];
    memset(bytes, 'v', sizeof bytes);
    for (int i = 0; i < 40; i++) {
        copy(bytes, sizeof bytes);
        borrow(bytes, sizeof bytes);
    }
    consume(4000);
    chain_clear(&chain, &env);
    check_all_released();
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    ck_assert_uint_eq(chain.bytes, 0);
}

/* Links where a block ends: the same chain with every fill level of the first block. */
TEST(test_block_borders)
{
    char bytes[CHAIN_RESERVE_MAX];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)('a' + i % 26);
    }
    for (size_t left = 0; left < 160; left++) {
        size_t fill = POOL_BLOCK_BYTES - 32 - left;
        for (size_t at = 0; at < fill; at += CHAIN_RESERVE_MAX) {
            size_t n = fill - at;
            copy(bytes, n < sizeof bytes ? n : sizeof bytes);
        }
        if (left % 2 == 0) {
            borrow("borrowed", 8);
        }
        copy(bytes, left % 3);
        reserve(bytes, 50, 50);
        borrow_in_two("in two", 6, 3);
        copy(bytes, 100);
        check_iov(IOV_MAX_RUNS, SIZE_MAX);
        if (left % 5 != 0) {
            drain();
        } else {
            chain_clear(&chain, &env);
            consumed = stream.len;
        }
        check_state();
    }
}

TEST(test_blocks_return_as_their_bytes_go)
{
    char bytes[CHAIN_RESERVE_MAX];
    memset(bytes, 'b', sizeof bytes);
    for (int i = 0; i < 64; i++) {
        copy(bytes, sizeof bytes);
    }
    uint64_t most = ctr_get(&pool.used);
    ck_assert_uint_le(most,
                      64 * sizeof bytes / (POOL_BLOCK_BYTES - CHAIN_RESERVE_MAX) + 1);
    for (int i = 0; i < 63; i++) {
        consume(sizeof bytes);
        uint64_t needed = chain.bytes / (POOL_BLOCK_BYTES - CHAIN_RESERVE_MAX) + 2;
        ck_assert_uint_le(ctr_get(&pool.used), needed);
    }
    consume(sizeof bytes);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
}

static size_t
random_size(struct rng *rng, size_t most)
{
    switch (rng_below(rng, 4)) {
    case 0:
        return (size_t)rng_below(rng, 3);
    case 1:
        return (size_t)rng_below(rng, most + 1);
    default:
        return (size_t)rng_below(rng, (most < 80 ? most : 80) + 1);
    }
}

static void
random_step(struct rng *rng, const char *bytes)
{
    size_t n, more;
    switch (rng_below(rng, 6)) {
    case 0:
        copy(bytes + rng_below(rng, 256), random_size(rng, 20000));
        break;
    case 1:
        n = random_size(rng, CHAIN_RESERVE_MAX);
        more = (size_t)rng_below(rng, CHAIN_RESERVE_MAX - n + 1);
        reserve(bytes + rng_below(rng, 256), n + more, n);
        break;
    case 2:
        borrow(bytes + rng_below(rng, 256), random_size(rng, 30000));
        break;
    case 3:
        n = random_size(rng, 30000);
        borrow_in_two(bytes, n, (size_t)rng_below(rng, n + 1));
        break;
    case 4:
        n = check_iov((unsigned)rng_below(rng, IOV_MAX_RUNS + 1),
                      random_size(rng, 60000));
        consume(n > 0 ? (size_t)rng_below(rng, n + 1) : 0);
        break;
    default:
        n = chain.bytes;
        consume(rng_below(rng, 8) == 0 ? n : (size_t)rng_below(rng, n + 1));
        break;
    }
}

TEST_LOOP(test_random_use, 8)
{
    FREED char *bytes = malloc(32768);
    ck_assert_ptr_nonnull(bytes);
    struct rng rng = rng_of(5, (uint64_t)_i);
    for (size_t i = 0; i < 32768; i++) {
        bytes[i] = (char)rng_u64(&rng);
    }
    for (int i = 0; i < 1500; i++) {
        random_step(&rng, bytes);
        check_state();
    }
    if (_i % 2 == 0) {
        drain();
    }
}

TEST_ABORTS(test_consuming_too_much)
{
    copy("abc", 3);
    chain_consume(&chain, &env, 4);
}

TEST_ABORTS(test_reserving_too_much)
{
    chain_reserve(&chain, &env, CHAIN_RESERVE_MAX + 1);
}
