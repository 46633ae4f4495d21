/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Schedules of an open loop: mean rate, order, determinism, independence of threads.
 */
#include "loadgen/arrival.h"
#include "check_unit.h"

#include <math.h>

#define ARRIVALS 200000
#define START (UINT64_C(987654321) * NSEC_PER_SEC)

static const char *const laws[] = {"fixed", "uniform", "exponential", "normal:0.5",
                                   "fb_ia"};
static const double rates[] = {0.5, 1000, 33333, 1e6, 1e8};
#define LAWS 5
#define RATES 5

START_TEST(test_mean_rate)
{
    struct dist gap;
    struct arrival a;
    double rate = rates[_i % RATES];
    nsec_t last = START;
    ck_assert_ptr_null(dist_parse_gap(&gap, laws[_i / RATES]));
    arrival_init(&a, &gap, rate, START, 1, (uint64_t)_i);
    for (int i = 0; i < ARRIVALS; i++) {
        nsec_t next = arrival_next(&a);
        ck_assert_uint_ge(next, last);
        last = next;
    }
    double seconds = (double)(last - START) / (double)NSEC_PER_SEC;
    ck_assert_double_eq_tol(ARRIVALS / seconds / rate, 1, 0.01);
}
END_TEST

/* Rounding to nanoseconds must not add up: at 3 per microsecond an error of half a
 * nanosecond a request would be 0.15 %. */
START_TEST(test_rounding_does_not_add_up)
{
    struct dist gap;
    struct arrival a;
    nsec_t first, last = 0;
    ck_assert_ptr_null(dist_parse_gap(&gap, "fixed"));
    arrival_init(&a, &gap, 3e6, START, 1, 0);
    first = arrival_next(&a);
    for (int i = 0; i < 3000000; i++) {
        last = arrival_next(&a);
    }
    ck_assert_double_eq_tol((double)(last - first), 1e9, 2);
}
END_TEST

START_TEST(test_same_seed_same_schedule)
{
    struct dist gap;
    struct arrival a, b, c;
    int same = 0;
    ck_assert_ptr_null(dist_parse_gap(&gap, "exponential"));
    arrival_init(&a, &gap, 1000, START, 1, 0);
    arrival_init(&b, &gap, 1000, START, 1, 0);
    arrival_init(&c, &gap, 1000, START, 1, 1);
    for (int i = 0; i < 1000; i++) {
        nsec_t when = arrival_next(&a);
        ck_assert_uint_eq(when, arrival_next(&b));
        same += when == arrival_next(&c);
    }
    ck_assert_int_eq(same, 0);
}
END_TEST

/* Threads with equal gaps start in different phases. */
START_TEST(test_fixed_gaps_are_out_of_phase)
{
    struct dist gap;
    struct arrival a, b;
    ck_assert_ptr_null(dist_parse_gap(&gap, "fixed"));
    arrival_init(&a, &gap, 1000, START, 1, 0);
    arrival_init(&b, &gap, 1000, START, 1, 2);
    nsec_t first_a = arrival_next(&a), first_b = arrival_next(&b);
    ck_assert_uint_ne(first_a, first_b);
    ck_assert_uint_lt(first_a - START, NSEC_PER_MSEC);
    ck_assert_uint_lt(first_b - START, NSEC_PER_MSEC);
}
END_TEST

/* The sum of the threads' exponential schedules is one of the whole rate: the number of
 * arrivals in a millisecond has equal mean and variance. */
START_TEST(test_threads_add_up)
{
    enum { THREADS = 4, BINS = 10000 };
    static int bins[BINS];
    struct dist gap;
    double sum = 0, squares = 0;
    ck_assert_ptr_null(dist_parse_gap(&gap, "exponential"));
    for (int t = 0; t < THREADS; t++) {
        struct arrival a;
        arrival_init(&a, &gap, 20000.0 / THREADS, START, 9, (uint64_t)t);
        for (;;) {
            uint64_t bin = (arrival_next(&a) - START) / NSEC_PER_MSEC;
            if (bin >= BINS) {
                break;
            }
            bins[bin]++;
        }
    }
    for (int i = 0; i < BINS; i++) {
        sum += bins[i];
        squares += (double)bins[i] * bins[i];
    }
    double mean = sum / BINS;
    double variance = squares / BINS - mean * mean;
    ck_assert_double_eq_tol(mean, 20, 0.2);
    ck_assert_double_eq_tol(variance / mean, 1, 0.06);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("arrival");
    TCase *tc = tcase_create("arrival");
    tcase_set_timeout(tc, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tc, test_mean_rate, 0, LAWS * RATES);
    tcase_add_test(tc, test_rounding_does_not_add_up);
    tcase_add_test(tc, test_same_seed_same_schedule);
    tcase_add_test(tc, test_fixed_gaps_are_out_of_phase);
    tcase_add_test(tc, test_threads_add_up);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
