/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The search for the largest rate that meets a goal, against servers whose answer is known:
 * queues simulated request by request, formulas with noise, a cliff, one that never meets
 * the goal, one that always does, clients that spoil runs; the texts of goals and scans.
 */
#include "loadgen/search/goal.h"
#include "loadgen/search/scan.h"
#include "loadgen/search/search.h"
#include "base/rng.h"
#include "check_main.h"

#include <math.h>

#define SEEDS 100
#define MU 100e3 /* of every simulated server */
#define RUN_S 0.2
#define BATCHES 20
#define T_95 2.093 /* Student's t of 19 degrees of freedom */
#define SAMPLES_MAX 200000

struct model;
typedef struct search_outcome (*run_function)(struct model *m, double rate);

/* A server, and the run that is under way. */
struct model {
    run_function run;
    double q, service_s; /* of a fixed service time; 0: exponential */
    double noise;
    double cliff;
    struct rng rng;
    unsigned length; /* of the run */
    bool spoils_every_third;
    unsigned runs;
};

static double
exponential(struct rng *r)
{
    return -log(rng_unit(r));
}

static double
gauss(struct rng *r)
{
    double u = rng_unit(r), v = rng_unit(r);
    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* ---- queues, request by request -------------------------------------------------------- */

static double samples[SAMPLES_MAX];

/* The one that would be at `rank` in order (Hoare's selection): sorting them all took most of
 * the time of these tests. */
static double
ranked(double *from, unsigned n, unsigned rank)
{
    long low = 0, high = (long)n - 1;
    while (low < high) {
        double pivot = from[low + (high - low) / 2];
        long i = low, j = high;
        while (i <= j) {
            for (; from[i] < pivot; i++) {
            }
            for (; from[j] > pivot; j--) {
            }
            if (i <= j) {
                double other = from[i];
                from[i++] = from[j];
                from[j--] = other;
            }
        }
        if ((long)rank <= j) {
            high = j;
        } else if ((long)rank >= i) {
            low = i;
        } else {
            break;
        }
    }
    return from[rank];
}

static double
percentile(double *from, unsigned n, double q)
{
    unsigned rank = (unsigned)ceil(q * n);
    return ranked(from, n, rank > 0 ? rank - 1 : 0);
}

/* The mean of the batches' percentiles, and what Student's t makes of their spread. */
static void
estimate(struct model *m, unsigned n, struct search_outcome *o)
{
    unsigned each = n / BATCHES;
    double batch[BATCHES], sum = 0, squares = 0;
    for (unsigned i = 0; i < BATCHES; i++) {
        batch[i] = percentile(samples + i * each, each, m->q);
        sum += batch[i];
    }
    o->value = sum / BATCHES;
    for (unsigned i = 0; i < BATCHES; i++) {
        squares += (batch[i] - o->value) * (batch[i] - o->value);
    }
    double half = T_95 * sqrt(squares / (BATCHES - 1) / BATCHES);
    o->low = o->value - half;
    o->high = o->value + half;
}

static struct search_outcome
run_queue(struct model *m, double rate)
{
    struct search_outcome o = {
        .achieved = 1, .is_valid = true, .seconds = RUN_S * m->length};
    if (rate == 0 || rate >= 0.995 * MU) {
        o.qps = MU * 0.995;
        o.achieved = rate == 0 ? 1 : fmin(1, o.qps / rate);
        o.value = o.low = o.high = INFINITY;
        return o;
    }
    unsigned n = (unsigned)(rate * RUN_S * m->length);
    double wait = 0;
    for (unsigned i = 0; i < n + 2000; i++) {
        double service = m->service_s > 0 ? m->service_s : exponential(&m->rng) / MU;
        if (i >= 2000) {
            samples[i - 2000] = (wait + service) * 1e9;
        }
        wait = fmax(0, wait + service - exponential(&m->rng) / rate);
    }
    o.qps = rate;
    estimate(m, n, &o);
    return o;
}

/* ---- formulas with noise --------------------------------------------------------------- */

static struct search_outcome
noisy(struct model *m, double rate, double truth, double capacity)
{
    double noise = m->noise / sqrt(m->length);
    double value = truth * (1 + noise * gauss(&m->rng));
    double half = 1.96 * noise * truth;
    double qps = rate == 0 ? capacity : fmin(rate, capacity);
    return (struct search_outcome){
        .value = value,
        .low = value - half,
        .high = value + half,
        .qps = qps,
        .achieved = rate == 0 ? 1 : qps / rate,
        .is_valid = !m->spoils_every_third || ++m->runs % 3 != 0,
        .seconds = RUN_S * m->length,
    };
}

static struct search_outcome
run_formula(struct model *m, double rate)
{
    double truth = rate > 0 && rate < MU ? -log(1 - m->q) / (MU - rate) * 1e9 : 1e9;
    return noisy(m, rate, truth, MU);
}

static struct search_outcome
run_cliff(struct model *m, double rate)
{
    return noisy(m, rate, rate > 0 && rate < m->cliff ? 100e3 : 100e6, MU);
}

static struct search_outcome
run_never(struct model *m, double rate)
{
    return noisy(m, rate, 5e6, MU);
}

static struct search_outcome
run_flat(struct model *m, double rate)
{
    return noisy(m, rate, 50e3, MU);
}

static struct search_outcome
run_endless(struct model *m, double rate)
{
    return noisy(m, rate, 50e3, rate == 0 ? MU : INFINITY);
}

/* ---- searching ------------------------------------------------------------------------- */

static struct search s;

static struct search_answer
search(struct model *m, const struct search_conf *conf)
{
    search_init(&s, conf);
    for (;;) {
        struct search_probe probe = search_next(&s);
        if (probe.stage == SEARCH_DONE) {
            return search_answer(&s);
        }
        expect(probe.rate >= 0 && isfinite(probe.rate));
        expect((probe.rate == 0) == (probe.stage == SEARCH_PEAK));
        expect(conf->rate_max == 0 || probe.rate <= conf->rate_max);
        expect(probe.length >= 1 && probe.length <= SEARCH_LENGTH_MAX);
        m->length = probe.length;
        struct search_outcome o = m->run(m, probe.rate);
        search_tell(&s, &o);
    }
}

static const struct search_conf usual = {
    .limit = 200e3, .tolerance = 0.01, .budget_s = 200 * RUN_S};

struct score {
    unsigned right, decided, probes;
};

static struct score
score_of(const struct model *proto, const struct search_conf *conf, double truth)
{
    struct score score = {0};
    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct model m = *proto;
        rng_init(&m.rng, seed, 0);
        struct search_answer a = search(&m, conf);
        bool is_near = fabs(a.qps - truth) <= 0.02 * truth;
        bool is_inside = a.low <= truth && truth <= a.high;
        expect(a.seconds <= conf->budget_s);
        expect(a.low <= a.qps && (a.high == 0 || a.qps <= a.high));
        /* what it calls decided is near */
        score.right += a.is_decided ? is_near : is_inside;
        score.decided += a.is_decided ? 1 : 0;
        score.probes += a.probes;
    }
    score.probes /= SEEDS;
    return score;
}

static void
expect_right(const struct model *m, const struct search_conf *conf, double truth,
             unsigned decided)
{
    struct score score = score_of(m, conf, truth);
    ck_assert_msg(score.right >= 95 && score.decided >= decided,
                  "truth %.0f: %u right, %u decided, %u probes", truth, score.right,
                  score.decided, score.probes);
}

/* The waiting time of M/D/1 falls off as exp(-theta t) (Tijms, "A First Course in Stochastic
 * Models", 9.5). */
static double
md1_percentile(double rate, double q)
{
    double d = 1 / MU, low = 1e-9, high = 50 * MU;
    for (int i = 0; i < 200; i++) {
        double theta = (low + high) / 2;
        if (rate * (exp(theta * d) - 1) < theta) {
            low = theta;
        } else {
            high = theta;
        }
    }
    double rho = rate * d, theta = (low + high) / 2;
    double c = (1 - rho) / (rho * exp(theta * d) - 1);
    return (log(c / (1 - q)) / theta + d) * 1e9;
}

static double
md1_truth(double limit, double q)
{
    double low = 0.05 * MU, high = 0.999 * MU;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (md1_percentile(middle, q) <= limit) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

TEST_LOOP(queues, 2)
{
    struct model mm1 = {.run = run_queue, .q = 0.95};
    struct model md1 = {.run = run_queue, .q = 0.95, .service_s = 1 / MU};
    struct search_conf conf = usual;
    if (_i == 0) {
        conf.limit = 60e3;
        expect_right(&mm1, &conf, MU + log(0.05) / 60e-6, 0);
    } else {
        conf.limit = 35e3;
        expect_right(&md1, &conf, md1_truth(35e3, 0.95), 0);
    }
}

static const double noises[] = {0.001, 0.01, 0.05, 0.2};

TEST_LOOP(formula, ROWS(noises))
{
    struct model m = {.run = run_formula, .q = 0.99, .noise = noises[_i]};
    /* a tolerance of the rate is 3.3 % of the latency here */
    expect_right(&m, &usual, MU + log(0.01) / 200e-6, noises[_i] < 0.02 ? 95 : 0);
}

TEST(cliff)
{
    struct model m = {.run = run_cliff, .noise = 0.05, .cliff = 61234};
    expect_right(&m, &usual, 61234, 95);
    m.cliff = 7000; /* below where it starts */
    expect_right(&m, &usual, 7000, 95);
    struct search_answer a = search(&m, &usual);
    ck_assert_int_eq(a.bound, SEARCH_BY_LATENCY);
    ck_assert(a.is_confirmed);
}

TEST(never)
{
    struct model m = {.run = run_never, .noise = 0.05};
    rng_init(&m.rng, 1, 0);
    struct search_answer a = search(&m, &usual);
    ck_assert(!a.is_met && !a.is_found && !a.is_decided);
    ck_assert_int_eq(a.bound, SEARCH_BY_LATENCY);
    ck_assert(a.high > 0 && a.high < 0.01 * MU && a.low == 0);
}

/* An interval wider than the rate itself is no answer, whatever lies in it. */
TEST(cut_short)
{
    struct search_conf conf = usual;
    bool was_found[2] = {false, false};
    for (unsigned runs = 1; runs <= 60; runs++) {
        struct model m = {.run = run_cliff, .noise = 0.05, .cliff = 7000};
        rng_init(&m.rng, 1, 0);
        conf.budget_s = runs * RUN_S;
        struct search_answer a = search(&m, &conf);
        was_found[a.is_found] = true;
        ck_assert(!a.is_found || (a.is_met && a.low <= 7000 * 1.1 && a.low >= 3500));
    }
    ck_assert(was_found[false] && was_found[true]);
}

/* All runs agree, but one so short tells nothing of what is above a percentile. */
static struct search_outcome
run_short(struct model *m, double rate)
{
    struct search_outcome o = run_cliff(m, rate);
    o.high = INFINITY;
    return o;
}

/* Clear at low rates and at high ones; in between every other run is slow. */
static struct search_outcome
run_divided(struct model *m, double rate)
{
    bool is_slow = rate > 60e3 || (rate > 10e3 && ++m->runs % 2 == 0);
    return noisy(m, rate, is_slow ? 100e6 : 100e3, MU);
}

/* Clear at low rates; from there on no run is long enough. */
static struct search_outcome
run_never_clear(struct model *m, double rate)
{
    struct search_outcome o = noisy(m, rate, rate > 10e3 ? 100e6 : 100e3, MU);
    o.low = rate > 10e3 ? 0 : o.low;
    o.high = rate > 10e3 ? INFINITY : o.high;
    return o;
}

static const struct {
    run_function run;
    unsigned budget; /* runs */
    enum search_doubt doubt;
} doubts[] = {
    {run_never_clear, 200, SEARCH_UNSURE}, {run_never_clear, 8, SEARCH_CUT_SHORT},
    {run_short, 200, SEARCH_UNSURE},       {run_divided, 200, SEARCH_DISAGREES},
    {run_divided, 5, SEARCH_CUT_SHORT},
};

/* Why an interval is wider than the rate itself. */
TEST_ROWS(wide, doubts, NULL)
{
    struct model m = {.run = row->run, .noise = 0.05, .cliff = 60e3};
    struct search_conf conf = usual;
    conf.budget_s = row->budget * RUN_S;
    rng_init(&m.rng, 1, 0);
    struct search_answer a = search(&m, &conf);
    ck_assert(a.is_met && !a.is_found);
    ck_assert_int_eq(a.doubt, row->doubt);
}

TEST(always)
{
    struct model m = {.run = run_flat, .noise = 0.05};
    /* 99 % of what is offered counts as achieved */
    expect_right(&m, &usual, MU / 0.99, 95);
    struct search_answer a = search(&m, &usual);
    ck_assert_int_eq(a.bound, SEARCH_BY_RATE);
    m.run = run_endless;
    a = search(&m, &usual);
    ck_assert(a.is_met && a.high == 0 && a.qps > MU);
    ck_assert_int_eq(a.bound, SEARCH_BY_NOTHING);
}

/* What is missing may be chance: the same rate again, for longer; in the end it is not met. */
TEST(in_doubt)
{
    struct search_outcome o = {.achieved = 1, .qps = 100, .is_valid = true, .seconds = 1};
    search_init(&s, &usual);
    while (search_next(&s).stage < SEARCH_BISECT) {
        double at = search_next(&s).rate;
        o.achieved = at > 100 ? 0.9 : 1;
        o.value = o.low = o.high = at > 50 ? INFINITY : 1;
        search_tell(&s, &o);
    }
    double rate = search_next(&s).rate;
    o.value = o.low = o.high = 1;
    o.achieved = 0.98;
    o.is_unsure = true;
    for (unsigned length = 1; length <= SEARCH_LENGTH_MAX; length *= 2) {
        ck_assert_double_eq(search_next(&s).rate, rate);
        ck_assert_uint_eq(search_next(&s).length, length);
        search_tell(&s, &o);
    }
    ck_assert_double_lt(search_next(&s).rate, rate);
}

TEST(capped)
{
    struct model m = {.run = run_formula, .q = 0.99, .noise = 0.01};
    struct search_conf conf = usual;
    rng_init(&m.rng, 1, 0);
    conf.rate_max = 30e3;
    struct search_answer a = search(&m, &conf);
    ck_assert(a.is_met && a.is_decided && a.is_confirmed && a.high == 0);
    ck_assert_double_eq(a.qps, 30e3);
    conf.rate_max = 90e3;
    expect_right(&m, &conf, MU + log(0.01) / 200e-6, 90);
}

/* The latency is to be three times that of the first probe at most. */
static struct search_answer search_relative(struct search_outcome (*run)(struct model *,
                                                                         double))
{
    struct model m = {.run = run, .q = 0.99, .noise = 0.01};
    struct search_conf conf = usual;
    conf.limit = 0;
    conf.limit_times = 3;
    rng_init(&m.rng, 1, 0);
    return search(&m, &conf);
}

TEST(relative)
{
    struct search_answer a = search_relative(run_formula);
    double truth = MU - (MU - a.ceiling / 10) / 3;
    ck_assert_msg(fabs(a.qps - truth) < 0.03 * truth, "%f, not %f", a.qps, truth);
    ck_assert(a.limit > 0);
}

static struct search_outcome
run_unanswered(struct model *m, double rate)
{
    struct search_outcome o = run_formula(m, rate);
    o.value = o.high = INFINITY;
    return o;
}

/* Three times infinity is no limit, which any rate would meet. */
TEST(relative_to_nothing)
{
    struct search_answer a = search_relative(run_unanswered);
    ck_assert(!a.is_met && !a.is_found && !a.is_confirmed);
    ck_assert_double_eq(a.limit, 0);
    ck_assert_double_gt(a.high, 0);
}

TEST(spoiled)
{
    struct model m = {.run = run_formula, .q = 0.99, .noise = 0.01};
    m.spoils_every_third = true;
    expect_right(&m, &usual, MU + log(0.01) / 200e-6, 90);
}

static struct search_outcome
run_dead(struct model *m, double rate)
{
    (void)m;
    (void)rate;
    return (struct search_outcome){.is_valid = true, .seconds = RUN_S};
}

static struct search_outcome
run_errors(struct model *m, double rate)
{
    struct search_outcome o = noisy(m, rate, 50e3, MU);
    o.errors = rate > 0.5 * MU ? 0.002 : 0.0005;
    return o;
}

TEST(errors)
{
    struct model m = {.run = run_dead};
    rng_init(&m.rng, 1, 0);
    struct search_answer a = search(&m, &usual);
    ck_assert(!a.is_met && a.probes == 1);
    struct search_conf conf = usual;
    conf.errors_max = 0.001;
    m = (struct model){.run = run_errors, .noise = 0.01};
    expect_right(&m, &conf, 0.5 * MU, 95);
    a = search(&m, &conf);
    ck_assert_int_eq(a.bound, SEARCH_BY_ERRORS);
}

/* However short the budget, it is kept, and what is said is true. */
TEST(budget)
{
    struct model m = {.run = run_formula, .q = 0.99, .noise = 0.02};
    double truth = MU + log(0.01) / 200e-6;
    for (int runs = 1; runs < 60; runs++) {
        struct search_conf conf = usual;
        conf.budget_s = runs * RUN_S;
        rng_init(&m.rng, 1, 0);
        struct search_answer a = search(&m, &conf);
        ck_assert_uint_le(a.probes, (unsigned)runs);
        ck_assert_msg(a.low <= truth * 1.02 && (a.high == 0 || a.high >= truth * 0.98),
                      "%d runs: %f to %f", runs, a.low, a.high);
        /* With a rate that is not exceeded, it is not that one which was confirmed. */
        conf.rate_max = 10 * MU;
        rng_init(&m.rng, 1, 0);
        struct search_answer b = search(&m, &conf);
        ck_assert_int_eq(b.is_confirmed, a.is_confirmed);
    }
}

/* ---- texts ----------------------------------------------------------------------------- */

static const struct {
    const char *text;
    double q, limit_ns, errors;
    enum goal_scope scope;
    const char *class_name, *says;
} goals[] = {
    {"99:1000", .99, 1e6, 0, GOAL_READS, "", "p99 of gets <= 1000 us"},
    {"95:500", .95, 5e5, 0, GOAL_READS, "", "p95 of gets <= 500 us"},
    {"99.9:500us", .999, 5e5, 0, GOAL_READS, "", "p99.9 of gets <= 500 us"},
    {"p99.9:500us", .999, 5e5, 0, GOAL_ALL, "", "p99.9 <= 500 us"},
    {"p999:500us", .999, 5e5, 0, GOAL_ALL, "", "p99.9 <= 500 us"},
    {"p50:2ms,err<0.01%", .5, 2e6, 1e-4, GOAL_ALL, "", "p50 <= 2000 us"},
    {"p50:1s,class=web,err<0.5", .5, 1e9, .5, GOAL_ALL, "web", "web p50 <= 1e+06 us"},
    {"p99:800ns", .99, 800, 0, GOAL_ALL, "", "p99 <= 0.8 us"},
    {"avg:250", 0, 25e4, 0, GOAL_ALL, "", "avg <= 250 us"},
    {"p95:5x", .95, 0, 0, GOAL_ALL, "", "p95 <= 5 times that of a low load"},
};

TEST_LOOP(goal_texts, ROWS(goals))
{
    struct goal g;
    char says[200];
    const char *wrong = goal_parse(&g, goals[_i].text);
    ck_assert_msg(wrong == NULL, "%s: %s", goals[_i].text, wrong);
    ck_assert_double_eq_tol(g.q, goals[_i].q, 1e-9);
    ck_assert_double_eq_tol(g.limit_ns, goals[_i].limit_ns, 1e-6);
    ck_assert_double_eq_tol(g.errors_max, goals[_i].errors, 1e-9);
    ck_assert_int_eq(g.scope, goals[_i].scope);
    ck_assert_str_eq(g.class_name, goals[_i].class_name);
    goal_describe(&g, says, sizeof says);
    ck_assert_str_eq(says, goals[_i].says);
}

static const char *const bad_goals[] = {
    "",
    "99",
    ":",
    "99:",
    ":1000",
    "99:0",
    "99:-1",
    "99:x",
    "0:100",
    "100:100",
    "p0:1",
    "p:100",
    "99:1000x1",
    "99:1x",
    "99:1000,",
    "99:1000,foo",
    "99:1000,err<-1",
    "99:1000,err<2",
    "99:1000us us",
    "99:1e30",
    "nan:1",
    "99:inf",
    "1000:95",
    "p101:1000",
    "p950:1000",
};

TEST_LOOP(bad_goal_texts, ROWS(bad_goals))
{
    struct goal g;
    ck_assert_msg(goal_parse(&g, bad_goals[_i]) != NULL, "\"%s\"", bad_goals[_i]);
}

static const struct {
    const char *text;
    unsigned count;
    double first, last;
    bool is_share;
} scans[] = {
    {"1000:5000:1000", 5, 1000, 5000, false}, {"1k:5k:2k", 3, 1000, 5000, false},
    {"1000:5999:1000", 5, 1000, 5000, false}, {"10%:100%:10%", 10, .1, 1, true},
    {"50%:50%:1%", 1, .5, .5, true},          {"2.5%:10%:2.5%", 4, .025, .1, true},
};

TEST_LOOP(scan_texts, ROWS(scans))
{
    struct scan_range r;
    double points[16];
    const char *wrong = scan_parse(&r, scans[_i].text);
    ck_assert_msg(wrong == NULL, "%s: %s", scans[_i].text, wrong);
    ck_assert_uint_eq(scan_count(&r), scans[_i].count);
    ck_assert_int_eq(r.is_share, scans[_i].is_share);
    unsigned last = scans[_i].count - 1;
    scan_fill(&r, SCAN_UP, NULL, points);
    ck_assert_double_eq_tol(points[0], scans[_i].first, 1e-9);
    ck_assert_double_eq_tol(points[last], scans[_i].last, 1e-9);
    scan_fill(&r, SCAN_DOWN, NULL, points);
    ck_assert_double_eq_tol(points[last], scans[_i].first, 1e-9);
    struct rng rng;
    rng_init(&rng, 1, 0);
    double sum = 0, shuffled = 0;
    for (unsigned i = 0; i <= last; i++) {
        sum += points[i];
    }
    scan_fill(&r, SCAN_SHUFFLED, &rng, points);
    bool is_sorted = true;
    for (unsigned i = 0; i <= last; i++) {
        shuffled += points[i];
        is_sorted = is_sorted && (i == 0 || points[i - 1] < points[i]);
    }
    ck_assert_double_eq_tol(shuffled, sum, 1e-6);
    ck_assert(last < 4 || !is_sorted);
}

static const char *const bad_scans[] = {
    "",        "1",         "1:2",       "1:2:",  "0:10:1",     "10:1:1",
    "1:10:0",  "1:10:1:1",  "1:10%:1",   "a:b:c", "1:100000:1", "-1:10:1",
    "1:10:-1", "%:100%:1%", "1e9:1e9:1", "1::2",
};

TEST_LOOP(bad_scan_texts, ROWS(bad_scans))
{
    struct scan_range r;
    ck_assert_msg(scan_parse(&r, bad_scans[_i]) != NULL, "\"%s\"", bad_scans[_i]);
}
