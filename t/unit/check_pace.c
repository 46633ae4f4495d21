/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long deferred work goes on before the sockets are looked at again, and in which pieces it
 * writes.
 */
#include "qos/pace.h"

#include "base/rng.h"
#include "check_main.h"

#define KIB 1024
#define MS NSEC_PER_MSEC
#define US NSEC_PER_USEC

/* So many writes of so many bytes, each of which took so long. */
static void
learn(struct pace *p, unsigned times, size_t bytes, nsec_t took)
{
    while (times-- > 0) {
        pace_learn(p, PACE_PLAIN, bytes, took);
    }
}

/* A part of the time since the last guest, between two bounds. */
TEST(turns_go_by_the_pace_of_guests)
{
    static const struct {
        nsec_t gone, turn;
    } rows[] = {
        {0, PACE_TURN_MIN_NS},
        {200 * US, PACE_TURN_MIN_NS}, /* 5,000 a second */
        {PACE_GUEST_PARTS * PACE_TURN_MIN_NS, PACE_TURN_MIN_NS},
        {6 * MS, 15 * US},
        {PACE_GUEST_PARTS * PACE_TURN_MAX_NS, PACE_TURN_MAX_NS},
        {1000 * MS, PACE_TURN_MAX_NS},
    };
    struct pace p;
    pace_init(&p);
    ck_assert_uint_eq(pace_turn_ns(&p, 0), PACE_TURN_MAX_NS);
    ck_assert_uint_eq(pace_turn_ns(&p, 100 * MS), PACE_TURN_MAX_NS);
    pace_note_guest(&p, 100 * MS);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(pace_turn_ns(&p, 100 * MS + rows[i].gone), rows[i].turn);
    }
    ck_assert_uint_eq(pace_turn_ns(&p, 99 * MS),
                      PACE_TURN_MIN_NS); /* the clock was set back */
}

TEST(the_cost_of_a_byte_is_learned)
{
    struct pace p;
    pace_init(&p);
    learn(&p, 200, 64 * KIB, 64 * US);
    nsec_t expected = pace_write_ns(&p, PACE_PLAIN, 64 * KIB);
    ck_assert_uint_ge(expected, 62 * US);
    ck_assert_uint_le(expected, 66 * US);
    learn(&p, 200, 32 * KIB, 4 * US);
    expected = pace_write_ns(&p, PACE_PLAIN, 64 * KIB);
    ck_assert_uint_ge(expected, 7 * US);
    ck_assert_uint_le(expected, 9 * US);
    ck_assert_uint_eq(pace_write_ns(&p, PACE_PLAIN, 0), 0);
}

TEST(small_writes_and_other_ways_teach_nothing)
{
    struct pace p;
    pace_init(&p);
    nsec_t plain = pace_write_ns(&p, PACE_PLAIN, KIB);
    learn(&p, 100, PACE_PIECE_MIN - 1, MS);
    for (unsigned i = 0; i < 100; i++) {
        pace_learn(&p, PACE_TLS, 64 * KIB, 200 * US);
    }
    ck_assert_uint_eq(pace_write_ns(&p, PACE_PLAIN, KIB), plain);
    ck_assert_uint_ge(pace_write_ns(&p, PACE_TLS, 64 * KIB), 190 * US);
}

TEST(one_that_was_held_up_is_forgotten)
{
    struct pace p;
    pace_init(&p);
    learn(&p, 200, 64 * KIB, 2 * US);
    learn(&p, 1, 64 * KIB, 10 * NSEC_PER_SEC);
    ck_assert_uint_le(pace_write_ns(&p, PACE_PLAIN, 64 * KIB), 3 * US);
    ck_assert_uint_eq(pace_piece(&p, PACE_PLAIN, PACE_TURN_MIN_NS), PACE_PIECE_MAX);
}

TEST(a_piece_fits_the_turn)
{
    struct pace p;
    pace_init(&p);
    learn(&p, 200, 64 * KIB, 10 * US);
    ck_assert_uint_eq(pace_piece(&p, PACE_PLAIN, PACE_TURN_MAX_NS), PACE_PIECE_MAX);
    learn(&p, 200, 64 * KIB, 16 * US); /* 4 KiB each */
    ck_assert_uint_eq(pace_piece(&p, PACE_PLAIN, PACE_TURN_MAX_NS), 100 * KIB);
    ck_assert_uint_eq(pace_piece(&p, PACE_PLAIN, PACE_TURN_MIN_NS), 32 * KIB);
    ck_assert_uint_le(pace_write_ns(&p, PACE_PLAIN, 100 * KIB), PACE_TURN_MAX_NS);
    learn(&p, 200, 64 * KIB, 50 * US);
    ck_assert_uint_eq(pace_piece(&p, PACE_PLAIN, PACE_TURN_MIN_NS), PACE_PIECE_MIN);
    for (unsigned i = 0; i < 200; i++) { /* whole records */
        pace_learn(&p, PACE_TLS, 64 * KIB, 16 * US);
    }
    ck_assert_uint_eq(pace_piece(&p, PACE_TLS, PACE_TURN_MAX_NS), 96 * KIB);
    learn(&p, 2000, 64 * KIB, NSEC_PER_SEC);
    ck_assert_uint_eq(pace_piece(&p, PACE_PLAIN, PACE_TURN_MIN_NS), PACE_PIECE_MIN);
}

/* Or they would wait for a round of all connections, beyond what an SLO counts. */
TEST(replies_of_small_requests_leave_with_their_turn)
{
    ck_assert(!pace_leaves(CLASS_CONTROL, PACE_PIECE_MAX));
    ck_assert(!pace_leaves(CLASS_SMALL, PACE_PIECE_MAX));
    ck_assert(!pace_leaves(CLASS_WRITE, PACE_PIECE_MIN));
    for (unsigned c = CLASS_WRITE; c < CLASS_COUNT; c++) {
        ck_assert(pace_leaves((enum req_class)c, PACE_PIECE_MIN + 1));
    }
}

TEST(nothing_that_is_measured_breaks_it)
{
    struct pace p;
    struct rng rng;
    pace_init(&p);
    rng_init(&rng, 1, 0);
    for (unsigned i = 0; i < 100000; i++) {
        enum pace_way way = (enum pace_way)rng_below(&rng, PACE_WAYS);
        uint64_t took = rng_u64(&rng) >> rng_below(&rng, 64);
        size_t bytes = rng_u64(&rng) >> (24 + rng_below(&rng, 40));
        pace_learn(&p, way, bytes, took);
        size_t piece = pace_piece(&p, way, rng_u64(&rng) >> rng_below(&rng, 64));
        ck_assert_uint_ge(piece, PACE_PIECE_MIN);
        ck_assert_uint_le(piece, PACE_PIECE_MAX);
        ck_assert_uint_le(pace_write_ns(&p, way, PACE_PIECE_MAX), 10 * MS);
    }
    learn(&p, 300, 64 * KIB, 8 * US); /* and it finds back */
    ck_assert_uint_le(pace_write_ns(&p, PACE_PLAIN, 64 * KIB), 9 * US);
}
