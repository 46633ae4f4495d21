/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The input buffer against a plain queue of bytes, and the blocks it takes.
 */
#include "base/buf.h"

#include "base/ctr.h"
#include "base/rng.h"
#include "check_main.h"

static struct pool pool;
static struct buf buf;

static void
set_up(void)
{
    pool_init(&pool);
    buf = (struct buf){.mem = NULL};
}

static void
tear_down(void)
{
    buf_fini(&buf, &pool);
    ck_assert_ptr_null(buf.mem);
    ck_assert_uint_eq(buf_len(&buf), 0);
    pool_fini(&pool);
}

static void
receive(const void *p, size_t n)
{
    char *space;
    size_t room;
    ck_assert(buf_open(&buf, &pool, &space, &room));
    ck_assert_uint_ge(room, n);
    memcpy(space, p, n);
    buf_fill(&buf, n);
}

FIXTURE(set_up, tear_down);

TEST(test_idle_holds_nothing)
{
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    receive("abc", 3);
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    ck_assert_mem_eq(buf_unread(&buf), "abc", 3);
    buf_consume(&buf, 3);
    buf_park(&buf, &pool);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    ck_assert_ptr_null(buf.mem);
    buf_park(&buf, &pool); /* again: nothing to do */
    ck_assert_ptr_null(buf.mem);
}

TEST(test_half_request_is_parked_in_a_copy)
{
    receive("xxget ab", 8);
    buf_consume(&buf, 2);
    buf_park(&buf, &pool);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    ck_assert_uint_eq(buf_len(&buf), 6);
    ck_assert_mem_eq(buf_unread(&buf), "get ab", 6);
    ck_assert_uint_eq(buf.cap, 6); /* no more than it needs */
    buf_park(&buf, &pool);         /* a parked copy stays as it is */
    ck_assert_mem_eq(buf_unread(&buf), "get ab", 6);
    receive("c\r\n", 3);
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    ck_assert_mem_eq(buf_unread(&buf), "get abc\r\n", 9);
    buf_consume(&buf, 9);
}

TEST(test_parked_copy_read_to_its_end)
{
    receive("ab", 2);
    buf_park(&buf, &pool);
    buf_consume(&buf, 1);
    ck_assert_mem_eq(buf_unread(&buf), "b", 1);
    buf_consume(&buf, 1);
    buf_park(&buf, &pool);
    ck_assert_ptr_null(buf.mem);
}

TEST(test_parking_bound)
{
    char bytes[BUF_PARKED_MAX + 1];
    memset(bytes, 'p', sizeof bytes);
    receive(bytes, sizeof bytes);
    buf_park(&buf, &pool);
    ck_assert_uint_eq(ctr_get(&pool.used), 1); /* too much to copy: keeps its block */
    ck_assert_uint_eq(buf_len(&buf), sizeof bytes);
    buf_consume(&buf, 1);
    buf_park(&buf, &pool);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    ck_assert_uint_eq(buf_len(&buf), BUF_PARKED_MAX);
    ck_assert_mem_eq(buf_unread(&buf), bytes, BUF_PARKED_MAX);
}

TEST(test_detaching_leaves_the_pool)
{
    char bytes[BUF_CAPACITY];
    memset(bytes, 'd', sizeof bytes);
    receive(bytes, sizeof bytes);
    ck_assert(!buf_detach(&buf, &pool)); /* a whole block */
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    buf_consume(&buf, 1);
    ck_assert(buf_detach(&buf, &pool));
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
    ck_assert_uint_eq(buf_len(&buf), sizeof bytes - 1);
    ck_assert_mem_eq(buf_unread(&buf), bytes, sizeof bytes - 1);
    ck_assert(buf_detach(&buf, &pool)); /* again: nothing to do */
    receive("e", 1);
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
    ck_assert_int_eq(buf_unread(&buf)[sizeof bytes - 1], 'e');
    buf_consume(&buf, sizeof bytes);
    ck_assert(buf_detach(&buf, &pool));
    ck_assert_ptr_null(buf.mem);
    ck_assert_uint_eq(ctr_get(&pool.used), 0);
}

TEST(test_capacity)
{
    char *space;
    size_t room;
    ck_assert(buf_open(&buf, &pool, &space, &room));
    ck_assert_uint_eq(room, BUF_CAPACITY);
    memset(space, 'a', room);
    buf_fill(&buf, room);
    ck_assert(buf_open(&buf, &pool, &space, &room));
    ck_assert_uint_eq(room, 0);
    ck_assert_uint_eq(buf_len(&buf), BUF_CAPACITY);
    buf_consume(&buf, 10);
    ck_assert(buf_open(&buf, &pool, &space, &room));
    ck_assert_uint_eq(room, 10);
    memset(space, 'b', room);
    buf_fill(&buf, room);
    ck_assert_int_eq(buf_unread(&buf)[BUF_CAPACITY - 11], 'a');
    ck_assert_int_eq(buf_unread(&buf)[BUF_CAPACITY - 10], 'b');
    ck_assert_uint_eq(ctr_get(&pool.used), 1);
}

/* The bytes that the stream has at each place, so that the model needs only two marks. */
static char
byte_at(uint64_t place)
{
    return (char)rng_mix(7, place, 0);
}

static void
check_unread(uint64_t read, uint64_t write)
{
    ck_assert_uint_eq(buf_len(&buf), write - read);
    const char *p = buf_unread(&buf);
    for (uint64_t at = read; at < write; at++) {
        if (p[at - read] != byte_at(at)) {
            ck_abort_msg("byte %llu of the stream is wrong", (unsigned long long)at);
        }
    }
}

static size_t
fill_some(struct rng *rng, uint64_t write)
{
    char *space;
    size_t room;
    size_t unread = buf_len(&buf);
    ck_assert(buf_open(&buf, &pool, &space, &room));
    ck_assert_uint_eq(room, BUF_CAPACITY - unread);
    size_t bound = rng_below(rng, 4) == 0 ? room : 300;
    size_t n = (size_t)rng_below(rng, (bound < room ? bound : room) + 1);
    for (size_t i = 0; i < n; i++) {
        space[i] = byte_at(write + i);
    }
    buf_fill(&buf, n);
    return n;
}

static void
park(void)
{
    size_t len = buf_len(&buf);
    buf_park(&buf, &pool);
    ck_assert_uint_eq(ctr_get(&pool.used), len > BUF_PARKED_MAX);
}

TEST_LOOP(test_random_use, 5)
{
    uint64_t read = 0, write = 0;
    struct rng rng = rng_of(4, (uint64_t)_i);
    for (int i = 0; i < 2000; i++) {
        switch (rng_below(&rng, 4)) {
        case 0:
            write += fill_some(&rng, write);
            break;
        case 1: {
            size_t n = (size_t)rng_below(&rng, write - read + 1);
            buf_consume(&buf, n);
            read += n;
            break;
        }
        case 2:
            buf_consume(&buf, write - read);
            read = write;
            break;
        default:
            park();
            break;
        }
        ck_assert_uint_le(ctr_get(&pool.used), 1);
        check_unread(read, write);
    }
}

TEST_ABORTS(test_consuming_too_much)
{
    receive("abc", 3);
    buf_consume(&buf, 4);
}

TEST_ABORTS(test_filling_too_much)
{
    receive("abc", 3);
    buf_fill(&buf, BUF_CAPACITY - 2);
}
