/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Schedules of an open loop: laws of gaps by Kolmogorov-Smirnov and by their variation, mean
 * rate, order, determinism, shared and joined streams.
 */
#include "loadgen/work/arrivals.h"
#include "check_law.h"

#define ARRIVALS 200000
#define START (UINT64_C(987654321) * NSEC_PER_SEC)

static struct arrivals_law law;

static struct arrivals_conf
conf_of(const char *text, double rate, uint64_t stream)
{
    const char *wrong = arrivals_parse(&law, text);
    ck_assert_msg(wrong == NULL, "%s: %s", text, wrong);
    return (struct arrivals_conf){&law, rate, START, 1, stream, 1, 1, 0, NULL};
}

static struct arrivals
started(const struct arrivals_conf *conf)
{
    struct arrivals a;
    arrivals_init(&a, conf);
    return a;
}

static struct arrivals
start(const char *text, double rate, uint64_t stream)
{
    struct arrivals_conf conf = conf_of(text, rate, stream);
    return started(&conf);
}

static double gaps[ARRIVALS]; /* of mean 1 */

/* Gaps of one stream at a rate at which nanoseconds do not matter. */
static void
sample(const char *text, double rate)
{
    SCOPED(arrivals_fini) struct arrivals a = start(text, rate, 7);
    nsec_t last = arrivals_next(&a);
    for (int i = 0; i < ARRIVALS; i++) {
        nsec_t next = arrivals_next(&a);
        ck_assert_uint_ge(next, last);
        gaps[i] = (double)(next - last) / 1e9 * rate;
        last = next;
    }
}

static double
scv(void)
{
    double mean = sample_mean(gaps, ARRIVALS), squares = 0;
    for (int i = 0; i < ARRIVALS; i++) {
        squares += (gaps[i] - mean) * (gaps[i] - mean);
    }
    return squares / ARRIVALS / mean / mean;
}

CDF(cdf_uniform, fmin(x / 2, 1))
CDF(cdf_exponential, 1 - exp(-x))

static double
cdf_fb_ia(double x)
{
    double k = 0.154971;
    return 1 - pow(1 + k * x / (1 - k), -1 / k);
}

static double
cdf_lognormal(double x)
{
    double sigma = sqrt(log(2));
    return 0.5 * erfc(-(log(x) + sigma * sigma / 2) / sigma / M_SQRT2);
}

/* Erlang of 3 stages, each of mean 1/3. */
CDF(cdf_erlang, 1 - exp(-3 * x) * (1 + 3 * x + 9 * x * x / 2))
/* Of shape 1/2 the gamma law is that of a squared normal variable. */
CDF(cdf_gamma_half, erf(sqrt(x / 2)))

static double
cdf_h2(double x)
{
    double p = (1 + sqrt(3.0 / 5)) / 2;
    return 1 - p * exp(-2 * p * x) - (1 - p) * exp(-2 * (1 - p) * x);
}

CDF(cdf_weibull, 1 - exp(-pow(x * tgamma(1.5), 2)))

static double
cdf_gev(double x)
{
    /* gev:5,1,0.1 has the mean 5 + (gamma(0.9) - 1) / 0.1 and nothing below 0. */
    double mean = 5 + (tgamma(0.9) - 1) / 0.1;
    double t = 1 + 0.1 * (x * mean - 5);
    return t <= 0 ? 0 : exp(-pow(t, -10));
}

static const struct {
    const char *text;
    double scv;
    double (*cdf)(double x); /* NULL: not looked at */
} rows[] = {
    {"fixed", 0, NULL},
    {"uniform", 1.0 / 3, cdf_uniform},
    {"uniform:100", 1.0 / 3, cdf_uniform},
    {"uniform:1,3", 1.0 / 12, NULL},
    {"exponential", 1, cdf_exponential},
    {"exponential:0.0", 1, cdf_exponential},
    {"normal", 0.01, NULL},
    {"normal:0.2", 0.04, NULL},
    {"normal:0.001,0.0002", 0.04, NULL},
    {"lognormal", 1, cdf_lognormal},
    {"lognormal:0.5", 0.25, NULL},
    {"pareto", 1.449, cdf_fb_ia},
    {"pareto:0.0,16.0292,0.154971", 1.449, cdf_fb_ia},
    {"pareto:0", 1, cdf_exponential},
    {"fb_ia", 1.449, cdf_fb_ia},
    {"fb_ia:15", 1 / (1 - 2 * .094286), NULL},
    {"gamma:3", 1.0 / 3, cdf_erlang},
    {"gamma:1", 1, cdf_exponential},
    {"gamma:0.5", 2, cdf_gamma_half},
    {"h2:4", 4, cdf_h2},
    {"h2:1", 1, cdf_exponential},
    {"weibull:2", 0.27324, cdf_weibull},
    {"gev:5,1,0.1", 0.06923, cdf_gev},
    /* Equal rates: what ends does not matter. */
    {"mmpp:1,1,50,20", 1, cdf_exponential},
};

static void
tear_down(void)
{
    arrivals_law_fini(&law);
}

FIXTURE(NULL, tear_down);

TEST_ROWS(test_laws, rows, row->text)
{
    sample(row->text, 1000);
    double variation = scv();
    ck_assert_double_eq_tol(sample_mean(gaps, ARRIVALS), 1,
                            0.01 * fmax(1, sqrt(variation)));
    ck_assert_double_eq_tol(variation, row->scv, 0.05 * row->scv + 1e-9);
    qsort(gaps, ARRIVALS, sizeof gaps[0], compare_doubles);
    if (row->cdf != NULL) {
        ck_assert_double_lt(distance_from(row->cdf, gaps, ARRIVALS), KS_LIMIT(ARRIVALS));
    }
}

/* Gaps that would be negative are 0 and the others shorter: the rate is what was asked. */
TEST_LOOP(test_truncated_laws, 4)
{
    static const char *const texts[] = {"normal:2", "gev:1,1,0", "gev:0,1,0.2",
                                        "gev:1,2,-0.3"};
    sample(texts[_i], 1000);
    ck_assert_double_eq_tol(sample_mean(gaps, ARRIVALS), 1, 0.01);
}

/* Adds up how many arrivals come in each piece of time. */
static void
count(struct arrivals *a, nsec_t piece, int *bins, unsigned len)
{
    for (uint64_t bin; (bin = (arrivals_next(a) - START) / piece) < len;) {
        bins[bin]++;
    }
}

/* The mean, and the variance in units of it. */
static double
mean_of(const int *bins, unsigned len, double *dispersion)
{
    double sum = 0, squares = 0;
    for (unsigned i = 0; i < len; i++) {
        sum += bins[i];
        squares += (double)bins[i] * bins[i];
    }
    *dispersion = (squares - sum * sum / len) / sum;
    return sum / len;
}

/* Bursts: at the rate asked for in the mean, but counts over a burst's length vary far more
 * than those of a Poisson process. A process that is off half of the time is one too. */
TEST_LOOP(test_mmpp, 2)
{
    static const char *const texts[] = {"bursty", "mmpp:1,0,10,10"};
    enum { BINS = 20000, RATE = 20000 };
    static int bins[BINS];
    SCOPED(arrivals_fini) struct arrivals a = start(texts[_i], RATE, 3);
    count(&a, 10 * NSEC_PER_MSEC, bins, BINS);
    double dispersion, mean = mean_of(bins, BINS, &dispersion);
    ck_assert_double_eq_tol(mean / (RATE / 100), 1, 0.05);
    ck_assert_double_gt(dispersion, 50);
}

static const char *const rate_laws[] = {"fixed", "uniform", "exponential", "normal:0.5",
                                        "fb_ia", "gamma:2", "h2:3",        "lognormal:2"};
static const double rates[] = {0.5, 1000, 33333, 1e6, 1e8};
#define RATES 5

TEST_LOOP(test_mean_rate, ROWS(rate_laws) * RATES)
{
    double rate = rates[_i % RATES];
    nsec_t last = START;
    SCOPED(arrivals_fini)
    struct arrivals a = start(rate_laws[_i / RATES], rate, (uint64_t)_i);
    for (int i = 0; i < ARRIVALS; i++) {
        nsec_t next = arrivals_next(&a);
        ck_assert_uint_ge(next, last);
        last = next;
    }
    double seconds = (double)(last - START) / (double)NSEC_PER_SEC;
    ck_assert_double_eq_tol(ARRIVALS / seconds / rate, 1, 0.015);
}

/* Gaps of centuries stop where times end, and never go back. */
TEST(test_no_overflow)
{
    SCOPED(arrivals_fini) struct arrivals a = start("pareto:0.99", 1e-30, 0);
    nsec_t last = START;
    for (int i = 0; i < 1000; i++) {
        nsec_t next = arrivals_next(&a);
        ck_assert_uint_ge(next, last);
        last = next;
    }
    ck_assert_uint_gt(last, START + UINT64_C(1000000) * NSEC_PER_SEC);
}

/* Rounding to nanoseconds must not add up: at 3 per microsecond an error of half a
 * nanosecond a request would be 0.15 %. */
TEST(test_rounding_does_not_add_up)
{
    nsec_t first, last = 0;
    SCOPED(arrivals_fini) struct arrivals a = start("fixed", 3e6, 0);
    first = arrivals_next(&a);
    for (int i = 0; i < 3000000; i++) {
        last = arrivals_next(&a);
    }
    ck_assert_double_eq_tol((double)(last - first), 1e9, 2);
}

TEST(test_same_seed_same_schedule)
{
    SCOPED(arrivals_fini) struct arrivals a, b, c;
    int same = 0;
    struct arrivals_conf conf = conf_of("exponential", 1000, 0);
    a = started(&conf);
    b = started(&conf);
    conf.stream = 1;
    c = started(&conf);
    for (int i = 0; i < 1000; i++) {
        nsec_t when = arrivals_next(&a);
        ck_assert_uint_eq(when, arrivals_next(&b));
        same += when == arrivals_next(&c);
    }
    ck_assert_int_eq(same, 0);
}

/* Threads with equal gaps start in different phases. */
TEST(test_fixed_gaps_are_out_of_phase)
{
    SCOPED(arrivals_fini) struct arrivals a, b;
    struct arrivals_conf conf = conf_of("fixed", 1000, 0);
    a = started(&conf);
    conf.stream = 2;
    b = started(&conf);
    nsec_t first_a = arrivals_next(&a), first_b = arrivals_next(&b);
    ck_assert_uint_ne(first_a, first_b);
    ck_assert_uint_lt(first_a - START, NSEC_PER_MSEC);
    ck_assert_uint_lt(first_b - START, NSEC_PER_MSEC);
}

/* Threads that share one stream take its arrivals in turn: together they are it. */
TEST_LOOP(test_shared_stream, 4)
{
    enum { THREADS = 3 };
    static const char *const texts[] = {"fb_ia", "fixed", "bursty", "gamma:4"};
    struct arrivals whole, part[THREADS];
    struct arrivals_conf conf = conf_of(texts[_i], 5000, 4);
    whole = started(&conf);
    conf.every = THREADS;
    for (unsigned t = 0; t < THREADS; t++) {
        conf.first = t;
        part[t] = started(&conf);
    }
    for (int i = 0; i < 3000; i++) {
        ck_assert_uint_eq(arrivals_next(&whole), arrivals_next(&part[i % THREADS]));
    }
    arrivals_fini(&whole);
    for (unsigned t = 0; t < THREADS; t++) {
        arrivals_fini(&part[t]);
    }
}

/* Many streams joined keep the rate, come in order, and lose the law: the sum of regular ones
 * is close to exponential, as is that of bursty ones. */
TEST_LOOP(test_joined_streams, 3)
{
    static const char *const texts[] = {"fixed", "h2:9", "gamma:8"};
    SCOPED(arrivals_fini) struct arrivals a;
    struct arrivals_conf conf = conf_of(texts[_i], 1000, 5);
    conf.sources = 512;
    a = started(&conf);
    nsec_t last = START;
    for (int i = 0; i < ARRIVALS; i++) {
        nsec_t next = arrivals_next(&a);
        ck_assert_uint_ge(next, last);
        gaps[i] = (double)(next - last) / 1e6;
        last = next;
    }
    double seconds = (double)(last - START) / 1e9;
    ck_assert_double_eq_tol(ARRIVALS / seconds / 1000, 1, 0.02);
    /* 512 equal gaps are but 512 phases, again and again: no better sample than that. */
    ck_assert_double_eq_tol(scv(), 1, 0.25);
}

/* The sum of the threads' exponential schedules is one of the whole rate: the number of
 * arrivals in a millisecond has equal mean and variance. */
TEST(test_threads_add_up)
{
    enum { THREADS = 4, BINS = 10000 };
    static int bins[BINS];
    ck_assert_ptr_null(arrivals_parse(&law, "exponential"));
    ck_assert(arrivals_adds_up(&law));
    for (int t = 0; t < THREADS; t++) {
        SCOPED(arrivals_fini)
        struct arrivals a = start("exponential", 20000.0 / THREADS, (uint64_t)t);
        count(&a, NSEC_PER_MSEC, bins, BINS);
    }
    double dispersion, mean = mean_of(bins, BINS, &dispersion);
    ck_assert_double_eq_tol(mean, 20, 0.2);
    ck_assert_double_eq_tol(dispersion, 1, 0.06);
}

/* A trace is repeated from anywhere in it, each gap in its place, at the rate asked for. */
TEST_LOOP(test_trace, 2)
{
    static const struct {
        const char *kind, *content;
        nsec_t us[4];
    } traces[] = {
        {"gaps", "# seconds\n1\n2\n3\n2\n", {500, 1000, 1500, 1000}},
        {"times", "100\n101\n103\n106\n", {500, 1000, 1500, 1000}},
    };
    SCOPED(arrivals_fini) struct arrivals a;
    ck_assert_ptr_null(
        arrivals_parse(&law, scratch_word(traces[_i].kind, traces[_i].content)));
    struct arrivals_conf conf = {&law, 1000, START, 1, 6, 1, 1, 0, NULL};
    a = started(&conf);
    nsec_t last = arrivals_next(&a), begin = last;
    unsigned place = 4;
    for (int i = 0; i < 4000; i++) {
        nsec_t next = arrivals_next(&a), gap = next - last;
        for (unsigned p = 0; place == 4 && p < 4; p++) { /* where did it begin? */
            nsec_t want = traces[_i].us[p] * 1000;
            place = want != 1000000 && gap + 1 >= want && gap <= want + 1 ? p : 4;
        }
        if (place < 4) {
            ck_assert_double_eq_tol((double)gap, (double)traces[_i].us[place] * 1e3, 1);
            place = (place + 1) % 4;
        }
        last = next;
    }
    ck_assert_uint_ne(place, 4);
    ck_assert_double_eq_tol((double)(last - begin), 4e9, 2);
}

TEST(test_bad_texts)
{
    static const char *const texts[] = {
        "",       "times:",   "normal:-1", "normal:0,1",   "lognormal:-1",
        "x",      "fixed:x",  "normal:11", "mmpp:1,2,3",   "gev:-100,1,0",
        "h2",     "gamma:0",  "fb_ia:1.5", "uniform:3,2",  "mmpp:-1,2,1,1",
        "gev",    "weibull",  "fb_ia:1,2", "pareto:0,1,1", "mmpp:1,1,1,1e9",
        "h2:x",   "pareto:1", "weibull:0", "normal:1,2,3", "mmpp:1,1e7,1,1",
        "mmpp",   "fb_ia:24", "gev:1,0,0", "mmpp:0,0,1,1", "mmpp:1,2,1e-7,1",
        "gaps",   "fb_ia:-1", "gev:1,1,1", "mmpp:1,1,0,1", "mmpp:1e308,0,1,1",
        "gamma",  "gamma:-1", "uniform:0", "weibull:0.09", "gaps:/no/such/file",
        "h2:0.5", "bursty:1", "pareto:1,2"};
    static const char *const bad_gaps[] = {"",      "0\n0\n", "-1\n2\n",
                                           "1 2\n", "x\n",    "1e308\n1e308\n"};
    static const char *const bad_times[] = {"5\n", "5\n4\n", "5\n5\n"};
    ck_assert_ptr_nonnull(arrivals_parse(&law, "mmpp:1e300,1e300,1,1e-300"));
    expect_each(word, texts, arrivals_parse(&law, word) != NULL);
    expect_each(word, bad_gaps, arrivals_parse(&law, scratch_word("gaps", word)) != NULL);
    expect_each(word, bad_times,
                arrivals_parse(&law, scratch_word("times", word)) != NULL);
}
