/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Histograms: bucket bounds, quantiles against sorted values, merging, overflow.
 */
#include "base/hist.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "check_main.h"

#define MAX_VALUE UINT64_C(100000000000)
#define SAMPLES 20000

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST(test_empty)
{
    struct hist *h = hist_create(10, MAX_VALUE);
    uint32_t at = 0;
    uint64_t low, high, n;
    ck_assert_uint_eq(hist_count(h), 0);
    ck_assert_uint_eq(hist_min(h), 0);
    ck_assert_uint_eq(hist_max(h), 0);
    ck_assert_uint_eq(hist_quantile(h, 0.99), 0);
    ck_assert_double_eq(hist_mean(h), 0);
    ck_assert_double_eq(hist_stddev(h), 0);
    ck_assert(!hist_next(h, &at, &low, &high, &n));
    hist_destroy(&h);
    ck_assert_ptr_null(h);
}

/* Every value lies in a bucket that is no wider than promised, and buckets touch. */
TEST_LOOP(test_buckets, HIST_SUB_BITS_MAX + 1 - HIST_SUB_BITS_MIN)
{
    unsigned sub_bits = HIST_SUB_BITS_MIN + (unsigned)_i;
    SCOPED(hist_destroy) struct hist *h = hist_create(sub_bits, HIST_VALUE_MAX);
    uint64_t next = 0;
    for (int shift = 0; shift < 63; shift++) {
        for (int delta = -2; delta <= 2; delta++) {
            uint64_t v = (UINT64_C(1) << shift) + (uint64_t)(int64_t)delta;
            if (v > HIST_VALUE_MAX) {
                continue; /* 1 - 2 */
            }
            hist_reset(h);
            hist_record(h, v);
            uint32_t at = 0;
            uint64_t low, high, n;
            ck_assert(hist_next(h, &at, &low, &high, &n));
            ck_assert_uint_eq(n, 1);
            ck_assert_uint_le(low, v);
            ck_assert_uint_ge(high, v);
            ck_assert_uint_le(high - low, v >> sub_bits);
            if (v < UINT64_C(2) << sub_bits) {
                ck_assert_uint_eq(low, high);
            }
            ck_assert(!hist_next(h, &at, &low, &high, &n));
        }
    }
    hist_reset(h);
    for (uint64_t v = 0; v < 5000; v++) {
        hist_record(h, v);
    }
    uint32_t at = 0;
    uint64_t low, high, n;
    while (hist_next(h, &at, &low, &high, &n)) {
        ck_assert_uint_eq(low, next);
        next = high + 1;
    }
    ck_assert_uint_ge(next, 5000);
}

TEST_LOOP(test_quantiles, 3)
{
    unsigned sub_bits = 10;
    SCOPED(hist_destroy) struct hist *h = hist_create(sub_bits, MAX_VALUE);
    FREED uint64_t *values = calloc(SAMPLES, sizeof *values);
    double sum = 0, squares = 0;
    struct rng rng = rng_of(1, (uint64_t)_i);
    for (int i = 0; i < SAMPLES; i++) {
        /* From nanoseconds to a minute, evenly over the magnitudes. */
        values[i] = (uint64_t)exp(rng_unit(&rng) * 24.8);
        hist_record(h, values[i]);
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    qsort(values, SAMPLES, sizeof *values, compare);
    for (int permille = 0; permille <= 1000; permille++) {
        double q = permille / 1000.0;
        size_t rank = (size_t)fmax(1, ceil(q * SAMPLES));
        double exact = (double)values[rank - 1];
        double got = (double)hist_quantile(h, q);
        ck_assert_double_le(fabs(got - exact), exact / (1 << sub_bits));
    }
    ck_assert_uint_eq(hist_min(h), values[0]);
    ck_assert_uint_eq(hist_max(h), values[SAMPLES - 1]);
    ck_assert_double_eq_tol(hist_mean(h), sum / SAMPLES, sum / SAMPLES * 1e-9);
    double sd = sqrt(squares / SAMPLES - sum / SAMPLES * (sum / SAMPLES));
    ck_assert_double_eq_tol(hist_stddev(h), sd, sd * 1e-9);
}

TEST(test_few_values)
{
    SCOPED(hist_destroy) struct hist *h = hist_create(10, MAX_VALUE);
    hist_record(h, 1000003);
    /* Clamped to what was seen, not to the middle of the bucket. */
    ck_assert_uint_eq(hist_quantile(h, 0), 1000003);
    ck_assert_uint_eq(hist_quantile(h, 1), 1000003);
    hist_record_n(h, 5, 3);
    hist_record_n(h, 7, 0);
    ck_assert_uint_eq(hist_count(h), 4);
    ck_assert_uint_eq(hist_quantile(h, 0.75), 5);
    ck_assert_uint_gt(hist_quantile(h, 0.76), 999000);
    ck_assert_double_eq_tol(hist_mean(h), (1000003 + 15) / 4.0, 1e-6);
}

static void
check_same(const struct hist *a, const struct hist *b)
{
    ck_assert_uint_eq(hist_count(a), hist_count(b));
    ck_assert_uint_eq(hist_overflow(a), hist_overflow(b));
    ck_assert_uint_eq(hist_min(a), hist_min(b));
    ck_assert_uint_eq(hist_max(a), hist_max(b));
    ck_assert_double_eq_tol(hist_mean(a), hist_mean(b), hist_mean(b) * 1e-9 + 1e-9);
    ck_assert_double_eq_tol(hist_stddev(a), hist_stddev(b), hist_stddev(b) * 1e-9 + 1e-9);
    uint32_t at_a = 0, at_b = 0;
    uint64_t x[3], y[3];
    while (hist_next(b, &at_b, &y[0], &y[1], &y[2])) {
        ck_assert(hist_next(a, &at_a, &x[0], &x[1], &x[2]));
        ck_assert_mem_eq(x, y, sizeof x);
    }
    ck_assert(!hist_next(a, &at_a, &x[0], &x[1], &x[2]));
}

TEST(test_merge_is_recording_both)
{
    SCOPED(hist_destroy) struct hist *a = hist_create(7, MAX_VALUE);
    SCOPED(hist_destroy) struct hist *b = hist_create(7, MAX_VALUE);
    SCOPED(hist_destroy) struct hist *both = hist_create(7, MAX_VALUE);
    struct rng rng = rng_of(2, 0);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t v = rng_below(&rng, MAX_VALUE + MAX_VALUE / 100);
        hist_record(i % 3 == 0 ? a : b, v);
        hist_record(both, v);
    }
    hist_merge(a, b);
    ck_assert_uint_gt(hist_overflow(a), 0);
    check_same(a, both);
    /* Merging nothing changes nothing. */
    hist_reset(b);
    hist_merge(a, b);
    check_same(a, both);
}

TEST(test_record_both)
{
    SCOPED(hist_destroy) struct hist *one = hist_create(7, 1000);
    SCOPED(hist_destroy) struct hist *a = hist_create(7, 1000);
    SCOPED(hist_destroy) struct hist *b = hist_create(7, 1000);
    hist_record(a, 7);
    for (uint64_t v = 0; v < 1100; v += 3) {
        hist_record_n(one, v, v % 4);
        hist_record_both(a, b, v, v % 4);
    }
    hist_record(one, 7);
    hist_record(b, 7);
    check_same(a, one);
    check_same(b, one);
}

/* As one by one, also where buckets are wider and above the largest value. */
TEST(test_record_row)
{
    static const uint64_t rows[][2] = {{3, 1},   {1, 16},   {250, 5}, {254, 2},
                                       {255, 2}, {995, 10}, {0, 300}, {7, 0}};
    SCOPED(hist_destroy) struct hist *row = hist_create(7, 1000);
    SCOPED(hist_destroy) struct hist *one = hist_create(7, 1000);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        hist_record_row(row, rows[i][0], rows[i][1]);
        for (uint64_t v = 0; v < rows[i][1]; v++) {
            hist_record(one, rows[i][0] + v);
        }
        check_same(row, one);
    }
}

TEST(test_overflow)
{
    SCOPED(hist_destroy) struct hist *h = hist_create(10, 1000000);
    hist_record(h, 1000000);
    ck_assert_uint_eq(hist_overflow(h), 0);
    hist_record(h, 1000001);
    hist_record_n(h, UINT64_MAX, 2);
    ck_assert_uint_eq(hist_overflow(h), 3);
    ck_assert_uint_eq(hist_count(h), 4);
    ck_assert_uint_eq(hist_max(h), 1000000);
    ck_assert_uint_eq(hist_quantile(h, 1), 1000000);
    hist_reset(h);
    ck_assert_uint_eq(hist_overflow(h), 0);
    ck_assert_uint_eq(hist_count(h), 0);
    ck_assert_uint_eq(hist_max(h), 0);
}

/* What came between two copies, in coarser buckets. */
TEST(test_since)
{
    SCOPED(hist_destroy)
    struct hist *fine = hist_create(10, 1000000), *now = hist_create(5, 1000000);
    SCOPED(hist_destroy)
    struct hist *before = hist_create(5, 1000000), *between = hist_create(5, 1000000);
    for (uint64_t v = 1; v <= 1000; v++) {
        hist_record(fine, v * 100);
    }
    hist_merge_coarse(before, fine);
    ck_assert_uint_eq(hist_count(before), 1000);
    hist_record_n(fine, 777, 3);
    hist_record(fine, 900000);
    hist_merge_coarse(now, fine);
    hist_since(between, now, before);
    ck_assert_uint_eq(hist_count(between), 4);
    ck_assert_uint_eq(hist_above(between, 777), 1);
    ck_assert_uint_eq(hist_above(between, 1000000), 0);
    ck_assert_uint_eq(hist_above(between, 2000000), 0);
    ck_assert_uint_eq(hist_above(between, 0), 4);
    ck_assert_uint_le(hist_min(between), 777);
    ck_assert_uint_ge(hist_max(between), 900000);
    ck_assert_double_eq_tol(hist_mean(between), (3 * 777 + 900000) / 4.0, 10000);
    hist_since(between, now, now);
    ck_assert_uint_eq(hist_count(between), 0);
}

static uint64_t
sum_of(const struct hist *h)
{
    uint32_t at = 0;
    uint64_t low, high, n, sum = 0;
    while (hist_next(h, &at, &low, &high, &n)) {
        sum += n;
    }
    return sum;
}

/* Readers pass over buckets that were never used: whatever put something into one, it is found,
 * and bounds that came from elsewhere hide nothing. */
TEST(test_used_buckets)
{
    SCOPED(hist_destroy)
    struct hist *h = hist_create(10, MAX_VALUE), *sum = hist_create(10, MAX_VALUE);
    static const uint64_t values[] = {5000, 3, MAX_VALUE, 4999, 0, 70000, 2 * MAX_VALUE};
    unsigned count = sizeof values / sizeof values[0];
    for (unsigned i = 0; i < count; i++) {
        hist_record(h, values[i]);
        ck_assert_uint_eq(sum_of(h), i + 1);
        hist_reset(sum);
        ck_assert_uint_eq(sum_of(sum), 0);
        hist_merge(sum, h);
        ck_assert_uint_eq(sum_of(sum), i + 1);
        hist_record(sum, values[count - 1 - i]);
        ck_assert_uint_eq(sum_of(sum), i + 2);
    }
    hist_reset(h);
    struct hist_moments narrow = {.min = 7, .max = 8};
    hist_bucket_add(h, 4000, 2);
    hist_bucket_add(h, 10, 1);
    ck_assert_uint_eq(sum_of(h), 3);
    hist_set_moments(h, &narrow);
    hist_record(h, 7);
    ck_assert_uint_eq(sum_of(h), 4);
    hist_reset(h);
    hist_restore(h, 0, 1, 0, 0, 0);
    ck_assert_uint_eq(sum_of(h), 0);
    hist_record(h, 5);
    hist_restore(h, 0, MAX_VALUE, 0, 0, 0);
    hist_record(h, 1000000);
    ck_assert_uint_eq(sum_of(h), 2);
}
