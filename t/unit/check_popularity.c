/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Popularity: Zipf's frequencies for many exponents, and the bijection from ranks to keys.
 */
#include "loadgen/work/popularity.h"
#include "check_main.h"

#include <math.h>
#include <stdlib.h>

#define DRAWS 100000

static struct popularity
popularity_of(const char *text, uint64_t keys)
{
    struct popularity p;
    ck_assert_ptr_null(popularity_parse(&p, text));
    popularity_init(&p, keys);
    return p;
}

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

/* Chi-squared over ranks; those expected fewer than ten times are taken together. */
TEST_ROWS(test_frequencies, laws, row->text)
{
    uint64_t n = row->keys;
    FREED uint64_t *seen = calloc(n + 1, sizeof *seen);
    double norm = 0;
    struct popularity p = popularity_of(row->text, n);
    struct rng rng = rng_of(3, (uint64_t)(row - laws));
    for (int i = 0; i < DRAWS; i++) {
        uint64_t rank = popularity_rank(&p, &rng);
        expect_between(rank, 1, n);
        seen[rank]++;
    }
    for (uint64_t k = 1; k <= n; k++) {
        norm += pow((double)k, -row->exponent);
    }
    double chi2 = 0, cells = 0, rest_expected = 0, rest_seen = 0;
    for (uint64_t k = 1; k <= n; k++) {
        double expected = DRAWS * pow((double)k, -row->exponent) / norm;
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
}

/* A large key space needs no table: the share of the most popular keys is that of the law.
 * */
TEST(test_large_key_space)
{
    uint64_t n = 1000000;
    double norm = 0, top = 0;
    int seen = 0;
    struct popularity p = popularity_of("zipf:0.99", n);
    struct rng rng = rng_of(4, 0);
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

TEST_LOOP(test_scatter_is_bijection, 11)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 65536, 65537, 100000};
    uint64_t n = sizes[_i];
    FREED char *seen = calloc(n, 1);
    struct popularity p = popularity_of("zipf:1", n);
    for (uint64_t rank0 = 0; rank0 < n; rank0++) {
        uint64_t key = popularity_scatter(&p, rank0);
        ck_assert_uint_lt(key, n);
        ck_assert_int_eq(seen[key], 0);
        seen[key] = 1;
    }
}

/* Hot keys do not sit beside each other: the hundred hottest fall into all tenths. */
TEST(test_hot_keys_lie_apart)
{
    int tenth[10] = {0};
    struct popularity p = popularity_of("zipf:1", 1000000);
    for (uint64_t rank0 = 0; rank0 < 100; rank0++) {
        tenth[popularity_scatter(&p, rank0) / 100000]++;
    }
    for (int i = 0; i < 10; i++) {
        expect_between(tenth[i], 1, 30);
    }
}

TEST(test_huge_key_space)
{
    uint64_t n = UINT64_C(1000000000000);
    struct rng rng = rng_of(5, 0);
    struct popularity p = popularity_of("zipf:0.8", n);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_lt(popularity_key_of(&p, popularity_rank(&p, &rng)), n);
    }
}

static double
share_within(const struct popularity *p, uint64_t ranks, uint64_t stream)
{
    int seen = 0;
    struct rng rng = rng_of(6, stream);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t rank = popularity_rank(p, &rng);
        expect_between(rank, 1, p->keys);
        seen += rank <= ranks;
    }
    return (double)seen / DRAWS;
}

/* Shares of the requests that the first so many keys get, to four deviations. */
static const struct {
    const char *text;
    uint64_t keys, ranks;
    double share;
} shares[] = {{"etc", 1000000, 10000, .55},
              {"etc", 1000000, 100000, .90},
              {"etc", 1000000, 500000, .99},
              {"etc", 1000000, 300000, .945},
              {"etc", 1000, 10, .55},
              {"etc", 1000, 100, .90},
              {"etc", 1, 1, 1},
              {"etc", 7, 7, 1},
              {"hotset:0.2:0.8", 1000, 200, .8},
              {"hotset:0.2:0.8", 1000, 100, .4},
              {"hotset:0.2:0.8", 1000, 600, .9},
              {"hotset:1:1", 50, 25, .5},
              {"normal", 1000000, 100000, .6827},
              {"normal:0.5", 1000, 500, .7153},
              {"normal:0.01", 10000, 196, .95},
              {"normal", 1, 1, 1},
              {"uniform", 1000, 300, .3},
              {"zipf:0", 1000, 300, .3}};

TEST_ROWS(test_shares, shares, row->text)
{
    struct popularity p = popularity_of(row->text, row->keys);
    double want = row->share;
    double sd = sqrt(want * (1 - want) / DRAWS);
    ck_assert_double_eq_tol(share_within(&p, row->ranks, (uint64_t)(row - shares)), want,
                            4 * sd + 2e-4);
}

/* The sum of k^-e over [from, to): exact while it is short, then an integral of cells. */
static double
zipf_sum(double e, double from, double to)
{
    double sum = 0;
    for (; from < to && from < 1000; from++) {
        sum += pow(from, -e);
    }
    if (from >= to) {
        return sum;
    }
    double a = from - 0.5, b = to - 0.5;
    return sum + (e == 1 ? log(b / a) : (pow(b, 1 - e) - pow(a, 1 - e)) / (1 - e));
}

/* A million million keys, by chi-squared over powers of two. */
TEST_LOOP(test_huge_zipf, 9)
{
    static const double exponents[] = {0.2, 0.5, 0.8, 0.99, 1, 1.01, 1.2, 2, 2.68};
    enum { CELLS = 41 };
    char text[32];
    double e = exponents[_i], seen[CELLS] = {0}, chi2 = 0, cells = 0;
    uint64_t n = UINT64_C(1) << 40;
    snprintf(text, sizeof text, "zipf:%g", e);
    struct popularity p = popularity_of(text, n);
    struct rng rng = rng_of(8, (uint64_t)_i);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t rank = popularity_rank(&p, &rng);
        ck_assert_uint_le(rank, n);
        seen[63 - __builtin_clzll(rank)]++;
    }
    double all = zipf_sum(e, 1, (double)n + 1);
    for (int c = 0; c < CELLS; c++) {
        double from = (double)(UINT64_C(1) << c);
        double to = c == CELLS - 1 ? from + 1 : 2 * from;
        double expected = DRAWS * zipf_sum(e, from, to) / all;
        if (expected >= 5) {
            chi2 += (seen[c] - expected) * (seen[c] - expected) / expected;
            cells++;
        }
    }
    ck_assert_double_le(chi2, cells + 5 * sqrt(2 * cells) + 1);
}

/* Which keys ranks are: in order, from the end, or scattered. */
TEST(test_keys_of_ranks)
{
    struct popularity p = popularity_of("zipf-ordered:1.2", 1000);
    ck_assert_uint_eq(popularity_key_of(&p, 1), 0);
    ck_assert_uint_eq(popularity_key_of(&p, 1000), 999);
    p = popularity_of("latest", 1000);
    ck_assert_uint_eq(popularity_key_of(&p, 1), 999);
    ck_assert_uint_eq(popularity_key_of(&p, 1000), 0);
    ck_assert_double_eq(p.zipf.exponent, 0.99);
    ck_assert_ptr_null(popularity_parse(&p, "latest:1.5"));
    ck_assert_double_eq(p.zipf.exponent, 1.5);
    p = popularity_of("hotset:0.1:0.9", 1000);
    ck_assert_uint_eq(popularity_key_of(&p, 5), popularity_scatter(&p, 4));
}

TEST(test_files)
{
    static const char *const bad[] = {"",
                                      "1\n",
                                      "0.5 0.5\n",
                                      "0.5 0.6\n0.4 0.8\n1 1\n",
                                      "0.5 0.6\n0.7 0.5\n1 1\n",
                                      "0.5 2\n1 1\n",
                                      "0 0\n1 1\n"};
    struct popularity p;
    ck_assert_ptr_null(popularity_parse(
        &p, scratch_word("cdf", "# keys requests\n0.1 0.5\n0.3 0.7\n1 1\n")));
    popularity_init(&p, 1000);
    ck_assert_double_eq_tol(share_within(&p, 100, 50), 0.5, 0.0065);
    ck_assert_double_eq_tol(share_within(&p, 200, 51), 0.6, 0.0065);
    ck_assert_double_eq_tol(share_within(&p, 300, 52), 0.7, 0.006);
    expect_each(word, bad, popularity_parse(&p, scratch_word("cdf", word)) != NULL);
}

TEST(test_bad_texts)
{
    static const char *const texts[] = {"",
                                        "gauss",
                                        "hotset",
                                        "latests",
                                        "hotset:1",
                                        "hotset:1:2",
                                        "hotset:1:0.5",
                                        "zipf",
                                        "seq:1",
                                        "zipf:-1",
                                        "normal:",
                                        "normal:0",
                                        "hotset:0.1:",
                                        "cdf:",
                                        "etc:1",
                                        "zipf:21",
                                        "zipf:nan",
                                        "normal:2",
                                        "zipf-ordered:",
                                        "zipf:",
                                        "zipf:x",
                                        "latest:",
                                        "latest:x",
                                        "hotset:0:1",
                                        "cdf:/no/such/file"};
    struct popularity p;
    expect_each(word, texts, popularity_parse(&p, word) != NULL);
}
