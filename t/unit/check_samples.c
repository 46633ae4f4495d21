/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which latencies are kept one by one: all, or a share of them at random.
 */
#include "loadgen/measure/samples.h"

#include <math.h>

#include "check_main.h"

#define REQUESTS 200000

static void
fill(struct samples *s, uint64_t seed)
{
    samples_start(s, seed, 0);
    for (uint64_t i = 0; i < REQUESTS; i++) {
        samples_add(s, i, i);
    }
}

TEST(test_all)
{
    SCOPED(samples_fini) struct samples s = {.all = NULL};
    samples_add(&s, 1, 2); /* none are wanted */
    ck_assert_uint_eq(s.count, 0);
    samples_init(&s, 1);
    fill(&s, 1);
    ck_assert_uint_eq(s.count, REQUESTS);
    ck_assert_uint_eq(s.all[7].start, 7);
    ck_assert_uint_eq(s.dropped, 0);
}

static const double shares[] = {.9, .5, .1, .01, .001};

/* The share, and independent of each other: gaps have the deviation of geometric ones. */
TEST_ROWS(test_share, shares, NULL)
{
    double f = *row, gaps = 0, squares = 0;
    SCOPED(samples_fini) struct samples s;
    samples_init(&s, f);
    fill(&s, 42);
    double expected = REQUESTS * f, deviation = sqrt(REQUESTS * f * (1 - f));
    ck_assert_double_eq_tol((double)s.count, expected, 4 * deviation);
    for (uint64_t i = 1; i < s.count; i++) {
        double gap = (double)(s.all[i].start - s.all[i - 1].start);
        gaps += gap;
        squares += gap * gap;
    }
    double n = (double)s.count - 1, mean = gaps / n;
    double of_law = sqrt(1 - f) / f;
    ck_assert_double_eq_tol(sqrt(squares / n - mean * mean) / of_law, 1, .25);
}

TEST(test_seed)
{
    SCOPED(samples_fini) struct samples a, b;
    samples_init(&a, .01);
    samples_init(&b, .01);
    fill(&a, 7);
    fill(&b, 6);
    ck_assert(a.count != b.count || a.all[0].start != b.all[0].start);
    fill(&b, 7); /* anew, and the same */
    ck_assert_uint_eq(a.count, b.count);
    for (uint64_t i = 0; i < a.count; i++) {
        ck_assert_uint_eq(a.all[i].start, b.all[i].start);
    }
}

/* So small a share that none is likely ever to be kept. */
TEST(test_tiny)
{
    SCOPED(samples_fini) struct samples s;
    samples_init(&s, 1e-300);
    fill(&s, 1);
    ck_assert_uint_eq(s.count, 0);
}
