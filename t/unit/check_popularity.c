/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Popularity: Zipf's frequencies for many exponents, and the bijection from ranks to keys.
 */
#include "loadgen/popularity.h"
#include "check_unit.h"

#include <math.h>
#include <stdlib.h>

#define DRAWS 100000

static const struct {
    const char *text;
    uint64_t keys;
    double exponent;
} laws[] = {
    {"uniform", 100, 0},       {"zipf:0", 100, 0},        {"zipf:0.5", 1000, 0.5},
    {"zipf:0.99", 1000, 0.99}, {"zipf:1", 1000, 1},       {"zipf:1.0", 1, 1},
    {"zipf:1.21", 50, 1.21},   {"zipf:2.68", 1000, 2.68}, {"zipf:20", 10, 20},
    {"zipf:1.5", 2, 1.5},
};
#define LAWS ((int)(sizeof laws / sizeof laws[0]))

/* Chi-squared over ranks; those expected fewer than ten times are taken together. */
START_TEST(test_frequencies)
{
    struct popularity p;
    struct rng rng;
    uint64_t n = laws[_i].keys;
    uint64_t *seen = calloc(n + 1, sizeof *seen);
    double norm = 0;
    ck_assert_ptr_null(popularity_parse(&p, laws[_i].text));
    popularity_init(&p, n);
    rng_init(&rng, 3, (uint64_t)_i);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t rank = popularity_rank(&p, &rng);
        ck_assert_uint_ge(rank, 1);
        ck_assert_uint_le(rank, n);
        seen[rank]++;
    }
    for (uint64_t k = 1; k <= n; k++) {
        norm += pow((double)k, -laws[_i].exponent);
    }
    double chi2 = 0, cells = 0, rest_expected = 0, rest_seen = 0;
    for (uint64_t k = 1; k <= n; k++) {
        double expected = DRAWS * pow((double)k, -laws[_i].exponent) / norm;
        if (expected < 10) {
            rest_expected += expected;
            rest_seen += (double)seen[k];
            continue;
        }
        double off = (double)seen[k] - expected;
        chi2 += off * off / expected;
        cells++;
    }
    if (rest_expected > 1) {
        chi2 += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
        cells++;
    }
    ck_assert_double_le(chi2, cells + 5 * sqrt(2 * cells) + 1);
    free(seen);
}
END_TEST

/* A large key space needs no table: the share of the most popular keys is that of the law.
 * */
START_TEST(test_large_key_space)
{
    struct popularity p;
    struct rng rng;
    uint64_t n = 1000000;
    double norm = 0, top = 0;
    int seen = 0;
    ck_assert_ptr_null(popularity_parse(&p, "zipf:0.99"));
    popularity_init(&p, n);
    rng_init(&rng, 4, 0);
    for (uint64_t k = 1; k <= n; k++) {
        double share = pow((double)k, -0.99);
        norm += share;
        top += k <= n / 100 ? share : 0;
    }
    for (int i = 0; i < DRAWS; i++) {
        seen += popularity_rank(&p, &rng) <= n / 100;
    }
    ck_assert_double_eq_tol((double)seen / DRAWS, top / norm, 0.01);
}
END_TEST

START_TEST(test_scatter_is_bijection)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 65536, 65537, 100000};
    struct popularity p;
    uint64_t n = sizes[_i];
    char *seen = calloc(n, 1);
    ck_assert_ptr_null(popularity_parse(&p, "zipf:1"));
    popularity_init(&p, n);
    for (uint64_t rank0 = 0; rank0 < n; rank0++) {
        uint64_t key = popularity_scatter(&p, rank0);
        ck_assert_uint_lt(key, n);
        ck_assert_int_eq(seen[key], 0);
        seen[key] = 1;
    }
    free(seen);
}
END_TEST

/* Hot keys do not sit beside each other: the hundred hottest fall into all tenths. */
START_TEST(test_hot_keys_lie_apart)
{
    struct popularity p;
    int tenth[10] = {0};
    ck_assert_ptr_null(popularity_parse(&p, "zipf:1"));
    popularity_init(&p, 1000000);
    for (uint64_t rank0 = 0; rank0 < 100; rank0++) {
        tenth[popularity_scatter(&p, rank0) / 100000]++;
    }
    for (int i = 0; i < 10; i++) {
        ck_assert_int_ge(tenth[i], 1);
        ck_assert_int_le(tenth[i], 30);
    }
}
END_TEST

START_TEST(test_huge_key_space)
{
    struct popularity p;
    struct rng rng;
    uint64_t n = UINT64_C(1000000000000);
    rng_init(&rng, 5, 0);
    ck_assert_ptr_null(popularity_parse(&p, "zipf:0.8"));
    popularity_init(&p, n);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_lt(popularity_key(&p, &rng), n);
    }
}
END_TEST

START_TEST(test_bad_texts)
{
    static const char *const texts[] = {"",        "zipf",     "zipf:",  "zipf:-1",
                                        "zipf:21", "zipf:nan", "zipf:x", "gauss"};
    struct popularity p;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(popularity_parse(&p, texts[i]) != NULL, "%s", texts[i]);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("popularity");
    TCase *tc = tcase_create("popularity");
    tcase_set_timeout(tc, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tc, test_frequencies, 0, LAWS);
    tcase_add_test(tc, test_large_key_space);
    tcase_add_loop_test(tc, test_scatter_is_bijection, 0, 11);
    tcase_add_test(tc, test_hot_keys_lie_apart);
    tcase_add_test(tc, test_huge_key_space);
    tcase_add_test(tc, test_bad_texts);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
