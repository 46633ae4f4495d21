/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Distributions of sizes and gaps: Kolmogorov-Smirnov distance from the law, published
 * means and quantiles, parameters as mutilate writes them.
 */
#include "loadgen/dist.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "check_unit.h"

#define SAMPLES 100000
/* Beyond this distance a sample of SAMPLES fits its law with less than 1 in 1,000; the seeds
 * are fixed, so a test that passes once passes for ever. */
#define KS_LIMIT (1.95 / sqrt(SAMPLES))

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double *
sample(const struct dist *d, uint64_t stream)
{
    double *values = calloc(SAMPLES, sizeof *values);
    struct rng rng;
    rng_init(&rng, 11, stream);
    for (int i = 0; i < SAMPLES; i++) {
        double u = rng_unit(&rng);
        values[i] = dist_value(d, u, rng_unit(&rng));
    }
    qsort(values, SAMPLES, sizeof *values, compare);
    return values;
}

static double
mean(const double *values)
{
    double sum = 0;
    for (int i = 0; i < SAMPLES; i++) {
        sum += values[i];
    }
    return sum / SAMPLES;
}

/* Written from the textbook definitions, not as the inverse of the code under test. */
static double
cdf_uniform(double x)
{
    return x < 10 ? 0 : x > 50 ? 1 : (x - 10) / 40;
}

static double
cdf_exponential(double x)
{
    return 1 - exp(-x / 200);
}

static double
cdf_normal(double x)
{
    return 0.5 * (1 + erf((x - 100) / (20 * M_SQRT2)));
}

static double
cdf_pareto(double x)
{
    return 1 - pow(1 + 0.348238 * (x - 15) / 214.476, -1 / 0.348238);
}

static double
cdf_gev(double x)
{
    double t = 1 + 0.078688 * (x - 30.7984) / 8.20449;
    return t <= 0 ? 0 : exp(-pow(t, -1 / 0.078688));
}

static double
cdf_gumbel(double x)
{
    return exp(-exp(-(x - 5) / 2));
}

static const struct {
    const char *text;
    double (*cdf)(double x);
} laws[] = {
    {"uniform:10,50", cdf_uniform},
    {"exponential:0.005", cdf_exponential},
    {"normal:100,20", cdf_normal},
    {"pareto:15,214.476,0.348238", cdf_pareto},
    {"gev:30.7984,8.20449,0.078688", cdf_gev},
    {"fb_key", cdf_gev},
    {"gev:5,2,0", cdf_gumbel},
};
#define LAWS ((int)(sizeof laws / sizeof laws[0]))

START_TEST(test_follows_law)
{
    struct dist d;
    ck_assert_ptr_null(dist_parse_size(&d, laws[_i].text));
    double *values = sample(&d, (uint64_t)_i);
    double distance = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double p = laws[_i].cdf(values[i]);
        distance = fmax(distance, fabs(p - (double)i / SAMPLES));
        distance = fmax(distance, fabs(p - (double)(i + 1) / SAMPLES));
    }
    ck_assert_double_lt(distance, KS_LIMIT);
    free(values);
}
END_TEST

/* Mean 36.22, median 33.85; for values p50 39, p75 214, p90 520, p99 1899. */
START_TEST(test_published_figures)
{
    struct dist d;
    ck_assert_ptr_null(dist_parse_size(&d, "fb_key"));
    double *values = sample(&d, 20);
    ck_assert_double_eq_tol(mean(values), 36.22, 0.15);
    ck_assert_double_eq_tol(values[SAMPLES / 2], 33.85, 0.15);
    ck_assert_double_eq_tol(values[SAMPLES / 100 * 95], 58.3, 0.6);
    free(values);
    ck_assert_ptr_null(dist_parse_size(&d, "fb_value"));
    values = sample(&d, 21);
    int small[15] = {0};
    for (int i = 0; i < SAMPLES && values[i] < 15; i++) {
        ck_assert_double_eq(values[i], floor(values[i]));
        small[(int)values[i]]++;
    }
    ck_assert_double_eq_tol(small[2], .17820 * SAMPLES, 400);
    ck_assert_double_eq_tol(small[11], .08989 * SAMPLES, 300);
    ck_assert_double_eq_tol(small[14], .01980 * SAMPLES, 150);
    ck_assert_double_eq_tol(values[SAMPLES / 2], 39, 2);
    ck_assert_double_eq_tol(values[SAMPLES / 4 * 3], 214, 6);
    ck_assert_double_eq_tol(values[SAMPLES / 10 * 9], 520, 15);
    ck_assert_double_eq_tol(values[SAMPLES / 100 * 99], 1899, 100);
    free(values);
}
END_TEST

static const char *const gaps[] = {
    "fixed",
    "uniform",
    "exponential",
    "exponential:0.0",
    "normal",
    "normal:0.5",
    "normal:0.001,0.0005",
    "normal:2",
    "pareto",
    "pareto:0.3",
    "pareto:0.0,16.0292,0.154971",
    "fb_ia",
    "uniform:100",
};

START_TEST(test_gaps_have_mean_one)
{
    struct dist d;
    ck_assert_ptr_null(dist_parse_gap(&d, gaps[_i]));
    double *values = sample(&d, 40 + (uint64_t)_i);
    ck_assert_double_ge(values[0], 0);
    ck_assert_double_eq_tol(mean(values), 1, 0.02);
    free(values);
}
END_TEST

/* The squared coefficient of variation tells the laws apart: 1/(1-2k) for Pareto. */
START_TEST(test_gap_variation)
{
    static const struct {
        const char *text;
        double scv;
    } rows[] = {
        {"fixed", 0},         {"uniform", 1.0 / 3}, {"exponential", 1},
        {"normal:0.2", 0.04}, {"fb_ia", 1.449},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct dist d;
        ck_assert_ptr_null(dist_parse_gap(&d, rows[r].text));
        double *values = sample(&d, 60 + r);
        double m = mean(values), squares = 0;
        for (int i = 0; i < SAMPLES; i++) {
            squares += (values[i] - m) * (values[i] - m);
        }
        ck_assert_double_eq_tol(squares / SAMPLES / m / m, rows[r].scv,
                                0.05 * rows[r].scv + 1e-9);
        free(values);
    }
}
END_TEST

START_TEST(test_sizes)
{
    struct dist d;
    ck_assert_ptr_null(dist_parse_size(&d, "200"));
    ck_assert_uint_eq(dist_size(&d, 0.3, 0.3, 0, 1000), 200);
    ck_assert_uint_eq(dist_size(&d, 0.3, 0.3, 250, 1000), 250);
    ck_assert_uint_eq(dist_size(&d, 0.3, 0.3, 0, 100), 100);
    ck_assert_uint_eq(dist_size_max(&d, 0, 1000), 200);
    ck_assert_ptr_null(dist_parse_size(&d, "fixed:7"));
    ck_assert_uint_eq(dist_size(&d, 0.3, 0.3, 0, 1000), 7);
    ck_assert_ptr_null(dist_parse_size(&d, "uniform:64"));
    ck_assert_uint_eq(dist_size(&d, 1e-12, 0.5, 0, 1000), 0);
    ck_assert_uint_eq(dist_size(&d, 1 - 1e-12, 0.5, 0, 1000), 64);
    ck_assert_uint_eq(dist_size_max(&d, 0, 1000), 64);
    ck_assert_uint_eq(dist_size_max(&d, 0, 30), 30);
    ck_assert_ptr_null(dist_parse_size(&d, "exponential:0.001"));
    ck_assert_uint_eq(dist_size(&d, 1e-300, 0.5, 0, 5000), 5000);
    ck_assert_uint_eq(dist_size_max(&d, 0, 5000), 5000);
    /* Extremes of the laws stay in bounds, also where they would be negative. */
    ck_assert_ptr_null(dist_parse_size(&d, "gev:30,8,0.5"));
    ck_assert_uint_eq(dist_size(&d, 1e-300, 0.5, 1, 250), 15);
    ck_assert_uint_eq(dist_size(&d, 1 - 1e-16, 0.5, 1, 250), 250);
    ck_assert_ptr_null(dist_parse_size(&d, "normal:1,100"));
    ck_assert_uint_eq(dist_size(&d, 1e-9, 0.5, 1, 250), 1);
}
END_TEST

START_TEST(test_bad_texts)
{
    static const char *const sizes[] = {
        "",
        "x",
        "fixed",
        "fixed:",
        "fixed:1,2",
        "-5",
        "fixed:-1",
        "uniform",
        "uniform:9,3",
        "uniform:1,2,3",
        "normal:5",
        "normal:5,-1",
        "exponential:0",
        "exponential",
        "pareto:1,2",
        "pareto:1,0,1",
        "gev:1,2",
        "fb_key:1",
        "fb_value:1",
        "uniform:1,2,3,4",
        "nan",
        "fixed:inf",
        "200x",
        "fb_ia",
    };
    static const char *const bad_gaps[] = {
        "",          "x",          "gev",     "pareto:1",     "pareto:1,2",
        "normal:-1", "normal:0,1", "fb_ia:1", "normal:1,2,3", "fixed:x",
    };
    struct dist d;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ck_assert_msg(dist_parse_size(&d, sizes[i]) != NULL, "size %s", sizes[i]);
    }
    for (size_t i = 0; i < sizeof bad_gaps / sizeof bad_gaps[0]; i++) {
        ck_assert_msg(dist_parse_gap(&d, bad_gaps[i]) != NULL, "gap %s", bad_gaps[i]);
    }
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("dist");
    TCase *tc = tcase_create("dist");
    tcase_set_timeout(tc, 60); /* sanitizers on a busy machine */
    tcase_add_loop_test(tc, test_follows_law, 0, LAWS);
    tcase_add_test(tc, test_published_figures);
    tcase_add_loop_test(tc, test_gaps_have_mean_one, 0,
                        (int)(sizeof gaps / sizeof gaps[0]));
    tcase_add_test(tc, test_gap_variation);
    tcase_add_test(tc, test_sizes);
    tcase_add_test(tc, test_bad_texts);
    suite_add_tcase(s, tc);
    return run_suite(s);
}
