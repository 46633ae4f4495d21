/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Distributions of sizes: Kolmogorov-Smirnov distance from the law, published
 * means and quantiles, parameters as mutilate writes them.
 */
#include "loadgen/work/dist.h"

#include "base/rng.h"
#include "check_law.h"

#define SAMPLES 100000

static double *
sample(const struct dist *d, uint64_t stream)
{
    double *values = calloc(SAMPLES, sizeof *values);
    struct rng rng = rng_of(11, stream);
    for (int i = 0; i < SAMPLES; i++) {
        values[i] = dist_value(d, rng_unit(&rng));
    }
    qsort(values, SAMPLES, sizeof *values, compare_doubles);
    return values;
}

CDF(cdf_uniform, x<10 ? 0 : x> 50 ? 1 : (x - 10) / 40)
CDF(cdf_exponential, 1 - exp(-x / 200))
CDF(cdf_normal, 0.5 * (1 + erf((x - 100) / (20 * M_SQRT2))))
CDF(cdf_pareto, 1 - pow(1 + 0.348238 * (x - 15) / 214.476, -1 / 0.348238))

static double
cdf_gev(double x)
{
    double t = 1 + 0.078688 * (x - 30.7984) / 8.20449;
    return t <= 0 ? 0 : exp(-pow(t, -1 / 0.078688));
}

CDF(cdf_gumbel, exp(-exp(-(x - 5) / 2)))
CDF(cdf_log_uniform, x<10 ? 0 : x> 1000 ? 1 : log10(x / 10) / 2)
CDF(cdf_lognormal, 0.5 * (1 + erf((log(x) - 5) / (1.2 * M_SQRT2))))
CDF(cdf_weibull, 1 - exp(-pow(x / 50, 0.7)))
/* 30 % uniform to 100, the rest above. */
CDF(cdf_mix, x < 100 ? 0.3 * x / 100 : 0.3 + 0.7 * (1 - exp(-(x - 100) / 50)))
/* Of a table of percentiles: 0 to 10 even, then even in the logarithm. */
CDF(cdf_table, x < 10 ? 0.25 * x / 10 : 0.25 + 0.75 * fmin(1, log10(x / 10) / 3))

static const struct {
    const char *text;
    double (*cdf)(double x);
    double mean; /* as the textbook has it */
} laws[] = {
    {"uniform:10,50", cdf_uniform, 30},
    {"exponential:0.005", cdf_exponential, 200},
    {"normal:100,20", cdf_normal, 100},
    {"pareto:15,214.476,0.348238", cdf_pareto, 344.07},
    {"gev:30.7984,8.20449,0.078688", cdf_gev, 36.22},
    {"fb_key", cdf_gev, 36.22},
    {"gev:5,2,0", cdf_gumbel, 6.158},
    {"lognormal:5,1.2", cdf_lognormal, 304.9},
    {"weibull:50,0.7", cdf_weibull, 63.29},
    {"percentiles:0=10,100=1000", cdf_log_uniform, 214.98},
    {"percentiles:0=0,25=10,100=10000", cdf_table, 1085.95},
    {"mix:0.3*uniform:100+0.7*pareto:100,50,0", cdf_mix, 120},
    {"mix:30*uniform:100+70*pareto:100,50,0", cdf_mix, 120},
};

TEST_ROWS(test_follows_law, laws, row->text)
{
    SCOPED(dist_fini) struct dist d;
    ck_assert_ptr_null(dist_parse(&d, row->text));
    FREED double *values = sample(&d, (uint64_t)(row - laws));
    ck_assert_double_lt(distance_from(row->cdf, values, SAMPLES), KS_LIMIT(SAMPLES));
    ck_assert_double_eq_tol(dist_mean(&d) / row->mean, 1, 2e-3);
    ck_assert_double_eq_tol(sample_mean(values, SAMPLES) / row->mean, 1, 0.02);
}

/* Every law is its quantile function: it gives back where its distribution function is u. */
TEST_ROWS(test_quantiles, laws, row->text)
{
    SCOPED(dist_fini) struct dist d;
    double last = 0;
    ck_assert_ptr_null(dist_parse(&d, row->text));
    for (int i = 1; i < 10000; i++) {
        double value = dist_value(&d, i / 1e4);
        ck_assert_double_ge(value, last);
        ck_assert_double_eq_tol(row->cdf(value), i / 1e4, 1e-6);
        last = value;
    }
}

TEST(test_normal_quantile)
{
    static const struct {
        double u, z;
    } rows[] = {{0.5, 0},
                {0.975, 1.959963984540054},
                {0.0013498980316300933, -3},
                {0.9999997133484281, 5},
                {1e-10, -6.361340902404056},
                {1e-300, -37.0471}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double tolerance = i < 5 ? 1e-9 : 1e-3;
        ck_assert_double_eq_tol(dist_normal_quantile(rows[i].u), rows[i].z, tolerance);
    }
    for (int i = 1; i < 1000; i++) {
        double u = i / 1000.0;
        ck_assert_double_eq_tol(0.5 * erfc(-dist_normal_quantile(u) / M_SQRT2), u, 1e-14);
    }
}

/* The figures published of Facebook's ETC pool. */
static const struct {
    const char *text;
    double quantile, value;
} published[] = {
    {"fb_key", .001, 16.1},       {"fb_key", .01, 19.0},    {"fb_key", .05, 22.2},
    {"fb_key", .5, 33.85},        {"fb_key", .95, 58.3},    {"fb_key", .99, 76.3},
    {"fb_key", .999, 106.1},      {"fb_key", .9999, 141.8}, {"fb_value", .5, 39},
    {"fb_value", .75, 214},       {"fb_value", .90, 520},   {"fb_value", .95, 826},
    {"fb_value", .99, 1899},      {"fb_value", .999, 4972}, {"fb_value", .9999, 11826},
    {"fb_value", .999999, 61175},
};

TEST(test_published_figures)
{
    SCOPED(dist_fini) struct dist d;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        ck_assert_ptr_null(dist_parse(&d, published[i].text));
        double value = dist_value(&d, published[i].quantile);
        ck_assert_double_eq_tol(value, published[i].value,
                                fmax(0.05, published[i].value * 1e-3) +
                                    0.5 * (value > 38));
        dist_fini(&d);
    }
    ck_assert_ptr_null(dist_parse(&d, "fb_key"));
    ck_assert_double_eq_tol(dist_mean(&d), 36.22, 0.01);
    ck_assert_ptr_null(dist_parse(&d, "fb_value"));
    ck_assert_double_eq_tol(dist_mean(&d), 194.4, 0.1);
    FREED double *values = sample(&d, 21);
    int small[15] = {0};
    for (int i = 0; i < SAMPLES && values[i] < 15; i++) {
        ck_assert_double_eq(values[i], floor(values[i]));
        small[(int)values[i]]++;
    }
    ck_assert_double_eq_tol(small[2], .17820 * SAMPLES, 500);
    ck_assert_double_eq_tol(small[11], .08989 * SAMPLES, 360);
    ck_assert_double_eq_tol(small[14], .01980 * SAMPLES, 180);
}

/* Values and their weights, by chi-squared: alpha = 1e-4 for 4 degrees is 23.5. */
TEST(test_discrete)
{
    static const double values[] = {0, 16, 21, 100, 4000};
    static const double weights[] = {1, 5, 2, 1.5, 0.5};
    SCOPED(dist_fini) struct dist d;
    double chi2 = 0;
    ck_assert_ptr_null(dist_parse(&d, "discrete:16=5,21=2,0=1,100=1.5,4000=0.5,7=0"));
    FREED double *drawn = sample(&d, 30);
    for (int v = 0; v < 5; v++) {
        int seen = 0;
        for (int i = 0; i < SAMPLES; i++) {
            seen += drawn[i] == values[v];
        }
        double expected = weights[v] / 10 * SAMPLES;
        chi2 += (seen - expected) * (seen - expected) / expected;
    }
    ck_assert_double_lt(chi2, 23.5);
    ck_assert_double_eq_tol(dist_mean(&d), 8 + 4.2 + 15 + 200, 1e-9);
    ck_assert_uint_eq(dist_size_max(&d, 0, 1000000), 4000);
}

TEST(test_bimodal)
{
    SCOPED(dist_fini) struct dist d;
    int small = 0;
    ck_assert_ptr_null(dist_parse(&d, "bimodal:0.9,100,5000"));
    ck_assert_double_eq_tol(dist_mean(&d), 90 + 500, 1e-9);
    FREED double *drawn = sample(&d, 31);
    for (int i = 0; i < SAMPLES; i++) {
        ck_assert(drawn[i] == 100 || drawn[i] == 5000);
        small += drawn[i] == 100;
    }
    ck_assert_double_eq_tol(small, .9 * SAMPLES, 6 * sqrt(.09 * SAMPLES));
}

TEST(test_files)
{
    static const char *const bad[] = {
        "",    "-1\n",  "1 2 3\n",  "# nothing\n", "1 0.5\n2 1.5\n", "1 0.5\n2 0.2\n",
        "x\n", "nan\n", "1\n1 2\n", "5 0.5\n4 1\n"};
    struct dist d;
    ck_assert_ptr_null(dist_parse(
        &d, scratch_word("file", "# sizes\n100\n  200\n\n200 # twice\n400\n")));
    ck_assert_double_eq(dist_value(&d, 0.1), 100);
    ck_assert_double_eq(dist_value(&d, 0.3), 200);
    ck_assert_double_eq(dist_value(&d, 0.7), 200);
    ck_assert_double_eq(dist_value(&d, 0.9), 400);
    dist_fini(&d);
    ck_assert_ptr_null(
        dist_parse(&d, scratch_word("file", "10,0\n100,0.5\n1000\t0.75\n2000 1")));
    ck_assert_double_eq_tol(dist_value(&d, 0.25), sqrt(1000), 1e-9);
    ck_assert_double_eq_tol(dist_value(&d, 0.5), 100, 1e-9);
    ck_assert_double_eq_tol(dist_value(&d, 0.75), 1000, 1e-6);
    ck_assert_uint_eq(dist_size_max(&d, 0, 1000000), 2000);
    dist_fini(&d);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(dist_parse(&d, scratch_word("file", bad[i])) != NULL, "%s", bad[i]);
        dist_fini(&d);
    }
    ck_assert_ptr_nonnull(dist_parse(&d, "file:/no/such/file"));
}

/* Of laws that a few draws are worth most of: pareto is E[min(X, max)] by its formula. */
TEST(test_mean_of_sizes)
{
    static const struct {
        const char *text;
        double mean;
    } rows[] = {
        {"7", 7},
        {"uniform:1,99", 50},
        {"discrete:1=99990,10000=4", 139990.0 / 99994},
        {"pareto:1,10,0.8", 48.03},
        {"mix:0.5*3+0.5*pareto:1,10,0.8", 25.515},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        SCOPED(dist_fini) struct dist d;
        ck_assert_ptr_null(dist_parse(&d, rows[i].text));
        double mean = dist_size_mean(&d, 1, 1000000);
        ck_assert_msg(fabs(mean / rows[i].mean - 1) < 0.003, "%s: %g, not %g",
                      rows[i].text, mean, rows[i].mean);
    }
}

TEST(test_uniform_sizes)
{
    SCOPED(dist_fini) struct dist d;
    unsigned seen[5] = {0};
    ck_assert_ptr_null(dist_parse(&d, "uniform:1,3"));
    for (unsigned i = 0; i < 300; i++) {
        seen[dist_size(&d, (i + 0.5) / 300, 0, 4)]++;
    }
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(seen[i], i >= 1 && i <= 3 ? 100 : 0);
    }
    ck_assert_uint_eq(dist_size(&d, 1 - DBL_EPSILON / 2, 0, 9), 3);
}

/* What is below 0 counts as 0, also of a long tail; they have a largest value, so that quantiles of equal
 * width do. */
TEST(test_mean_of_gev)
{
    static const char *const texts[] = {"gev:1,1,-0.5", "gev:5,2,-1",  "gev:1,1,-2",
                                        "gev:5,2,-2.5", "gev:2,1,-3",  "gev:-3,1,-2",
                                        "gev:1,1,-20",  "gev:300,1,-1"};
    for (size_t i = 0; i < ROWS(texts); i++) {
        struct dist d;
        double sum = 0;
        ck_assert_ptr_null(dist_parse(&d, texts[i]));
        for (int n = 0; n < 1000000; n++) {
            sum += fmax(0, dist_value(&d, (n + 0.5) / 1e6));
        }
        ck_assert_msg(fabs(dist_mean(&d) - sum / 1e6) < 1e-3, "%s: %g, not %g", texts[i],
                      dist_mean(&d), sum / 1e6);
    }
}

TEST(test_sizes)
{
    struct dist d;
    ck_assert_ptr_null(dist_parse(&d, "200"));
    ck_assert_uint_eq(dist_size(&d, 0.3, 0, 1000), 200);
    ck_assert_uint_eq(dist_size(&d, 0.3, 250, 1000), 250);
    ck_assert_uint_eq(dist_size(&d, 0.3, 0, 100), 100);
    ck_assert_uint_eq(dist_size_max(&d, 0, 1000), 200);
    ck_assert_ptr_null(dist_parse(&d, "fixed:7"));
    ck_assert_uint_eq(dist_size(&d, 0.3, 0, 1000), 7);
    ck_assert_ptr_null(dist_parse(&d, "uniform:64"));
    ck_assert_uint_eq(dist_size(&d, 1e-12, 0, 1000), 0);
    ck_assert_uint_eq(dist_size(&d, 1 - 1e-12, 0, 1000), 64);
    ck_assert_uint_eq(dist_size_max(&d, 0, 1000), 64);
    ck_assert_uint_eq(dist_size_max(&d, 0, 30), 30);
    ck_assert_ptr_null(dist_parse(&d, "exponential:0.001"));
    ck_assert_uint_eq(dist_size(&d, 1 - 1e-16, 0, 5000), 5000);
    ck_assert_uint_eq(dist_size_max(&d, 0, 5000), 5000);
    /* Extremes of the laws stay in bounds, also where they would be negative. */
    ck_assert_ptr_null(dist_parse(&d, "gev:30,8,0.5"));
    ck_assert_uint_eq(dist_size(&d, 1e-300, 1, 250), 15);
    ck_assert_uint_eq(dist_size(&d, 1 - 1e-16, 1, 250), 250);
    ck_assert_ptr_null(dist_parse(&d, "normal:1,100"));
    ck_assert_uint_eq(dist_size(&d, 1e-9, 1, 250), 1);
    ck_assert_uint_eq(dist_size(&d, 1 - 1e-9, 1, 250), 250);
}

TEST(test_bad_texts)
{
    static const char *const sizes[] = {
        "",        "mix:1*x",     "normal:5,-1",   "discrete:1=2,",
        "x",       "fixed:-1",    "exponential",   "mix:1*mix:1*5",
        "-5",      "normal:5",    "lognormal:1",   "lognormal:1,-1",
        "nan",     "fb_key:1",    "weibull:0,1",   "uniform:1,2,3,4",
        "200x",    "mix:1*5+",    "weibull:1,0",   "bimodal:1.5,1,2",
        "mix:",    "fixed:1,2",   "pareto:1,0,1",  "bimodal:0.5,-1,2",
        "fixed",   "fixed:inf",   "discrete:1=0",  "percentiles:-1=5",
        "mix:1",   "weibull:1",   "percentiles:",  "uniform:1,2,3,4,5",
        "file:",   "discrete:",   "uniform:1,2,3", "percentiles:101=5",
        "fixed:",  "pareto:1,2",  "exponential:0", "percentiles:50=5,40=6",
        "uniform", "fb_value:1",  "bimodal:0.5,1", "percentiles:50=5,60=4",
        "gev:1,2", "discrete:1",  "discrete:1=-1", "mix:1*discrete:1=1+1*y",
        "mix:0*5", "uniform:9,3", "discrete:-1=1"};
    struct dist d;
    ck_assert_ptr_nonnull(dist_parse(&d, "mix:1*1+1*1+1*1+1*1+1*1+1*1+1*1+1*1+1*1"));
    dist_fini(&d);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ck_assert_msg(dist_parse(&d, sizes[i]) != NULL, "size %s", sizes[i]);
        dist_fini(&d);
    }
}

TEST(test_another_name_says_which_there_are)
{
    struct dist d;
    ck_assert_ptr_nonnull(strstr(dist_parse(&d, "2m"), "a number, fixed, uniform"));
}
