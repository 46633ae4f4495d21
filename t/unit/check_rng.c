/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Random numbers: the published sequence, determinism, independence of streams, evenness.
 */
#include "base/rng.h"
#include "check_main.h"

#include <math.h>

#define DRAWS 100000

/* xoshiro256** from the state 1, 2, 3, 4: its first outputs follow from the published
 * algorithm by hand: rotl(2 * 5, 7) * 9 = 11520, then state[1] is 0. */
TEST(test_known_sequence)
{
    struct rng r = {{1, 2, 3, 4}};
    ck_assert_uint_eq(rng_u64(&r), 11520);
    ck_assert_uint_eq(rng_u64(&r), 0);
    ck_assert_uint_eq(rng_u64(&r), 1509978240);
    ck_assert_uint_eq(rng_u64(&r), UINT64_C(1215971899390074240));
}

TEST(test_same_seed_same_numbers)
{
    struct rng a, b, c, d;
    int same_stream = 0, same_seed = 0;
    rng_init(&a, 42, 7);
    rng_init(&b, 42, 7);
    rng_init(&c, 42, 8);
    rng_init(&d, 43, 7);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_u64(&a);
        ck_assert_uint_eq(x, rng_u64(&b));
        same_stream += x == rng_u64(&c);
        same_seed += x == rng_u64(&d);
    }
    ck_assert_int_eq(same_stream, 0);
    ck_assert_int_eq(same_seed, 0);
}

/* Neighbouring streams must not be one sequence, shifted. */
TEST(test_streams_do_not_overlap)
{
    struct rng a, b;
    uint64_t first[16];
    rng_init(&a, 1, 0);
    for (int i = 0; i < 16; i++) {
        first[i] = rng_u64(&a);
    }
    rng_init(&b, 1, 1);
    for (int i = 0; i < 16; i++) {
        uint64_t x = rng_u64(&b);
        for (int j = 0; j < 16; j++) {
            ck_assert_uint_ne(x, first[j]);
        }
    }
}

TEST_LOOP(test_below_is_even, 6)
{
    static const uint64_t bounds[] = {1, 2, 3, 7, 10, 100};
    uint64_t bound = bounds[_i];
    int seen[100] = {0};
    struct rng r = rng_of(5, bound);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t v = rng_below(&r, bound);
        ck_assert_uint_lt(v, bound);
        seen[v]++;
    }
    double expected = (double)DRAWS / (double)bound;
    double chi2 = 0;
    for (uint64_t v = 0; v < bound; v++) {
        chi2 += (seen[v] - expected) * (seen[v] - expected) / expected;
    }
    double freedom = (double)bound - 1;
    ck_assert_double_le(chi2, freedom + 5 * sqrt(2 * freedom) + 1);
}

TEST(test_below_large_bounds)
{
    uint64_t bound = (UINT64_C(1) << 63) + 1; /* half of all words are unfair */
    int upper = 0;
    struct rng r = rng_of(6, 0);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t v = rng_below(&r, bound);
        ck_assert_uint_lt(v, bound);
        upper += v >= bound / 2;
    }
    expect_between(upper, DRAWS / 2 - 1000, DRAWS / 2 + 1000);
    ck_assert_uint_lt(rng_below(&r, UINT64_MAX), UINT64_MAX);
}

TEST(test_unit_is_open)
{
    double sum = 0;
    struct rng r = rng_of(7, 0);
    for (int i = 0; i < DRAWS; i++) {
        double u = rng_unit(&r);
        ck_assert_double_gt(u, 0);
        ck_assert_double_lt(u, 1);
        sum += u;
    }
    ck_assert_double_eq_tol(sum / DRAWS, 0.5, 0.005);
    /* A state whose next word is all ones or all zeros: the ends of the range. State word 1
     * is what the output is made of. */
    struct rng low = {{1, 0, 0, 0}};
    ck_assert_double_gt(rng_unit(&low), 0);
    uint64_t x = UINT64_MAX * UINT64_C(0x8e38e38e38e38e39); /* times 9 gives all ones */
    x = x >> 7 | x << 57;
    struct rng high = {{0, x * UINT64_C(0xcccccccccccccccd), 0, 0}};
    struct rng copy = high;
    ck_assert_uint_eq(rng_u64(&copy), UINT64_MAX);
    ck_assert_double_lt(rng_unit(&high), 1);
}

TEST(test_mix)
{
    ck_assert_uint_eq(rng_mix(1, 2, 3), rng_mix(1, 2, 3));
    ck_assert_uint_ne(rng_mix(1, 2, 3), rng_mix(1, 2, 4));
    ck_assert_uint_ne(rng_mix(1, 2, 3), rng_mix(1, 3, 2));
    ck_assert_uint_ne(rng_mix(1, 2, 3), rng_mix(2, 1, 3));
    /* One bit of the key changes half of the result's bits. */
    int changed = 0;
    for (uint64_t key = 0; key < 1000; key++) {
        for (int bit = 0; bit < 64; bit++) {
            uint64_t other = rng_mix(9, key ^ UINT64_C(1) << bit, 0);
            changed += __builtin_popcountll(rng_mix(9, key, 0) ^ other);
        }
    }
    ck_assert_double_eq_tol(changed / 64000.0, 32, 0.1);
}

TEST(test_seed_differs)
{
    ck_assert_uint_ne(rng_seed(), rng_seed());
}
