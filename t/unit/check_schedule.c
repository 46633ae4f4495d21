/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Schedules: the rate and its integral by quadrature, the inverse, counts of arrivals of every
 * law in every interval against the integral, warm-up, texts that are refused.
 */
#include "loadgen/work/schedule.h"
#include "check_main.h"

#include <math.h>

#include "loadgen/work/arrivals.h"

#define RATE 20000.0
#define RUN_S 4.0
#define START (UINT64_C(98765) * NSEC_PER_SEC)

static const struct {
    const char *text;
    double lead_s, quiet_s;
    struct {
        double at_s, krate; /* from the start of the window; thousands a second */
    } known[5];
    double kmean;
} rows[] = {
    {"const:5k", 0, 0, {{0, 5}, {3, 5}, {100, 5}}, 5},
    {"const:150%", 1, 0.5, {{-1, 30}, {-0.6, 30}, {-0.4, 0}, {0, 30}}, 30},
    {"ramp:0:40k:4s", 0, 0, {{0, 0}, {1, 10}, {2, 20}, {4, 40}, {9, 40}}, 20},
    {"ramp:200%:50%:2", 0.5, 0, {{-0.4, 40}, {1, 25}, {2, 10}, {3, 10}}, 17.5},
    {"steps:10k:30k:10k:1000ms", 0, 0, {{0, 10}, {1, 20}, {2.5, 30}, {9, 30}}, 22.5},
    {"steps:30k:5k:10k:1", 0, 0, {{0, 30}, {1, 20}, {2, 10}, {3, 10}}, 17.5},
    {"square:0:100k:100ms:0.25",
     0.2,
     0.1,
     {{-0.15, 100}, {-0.05, 0}, {0.01, 100}, {0.03, 0}, {0.12, 100}},
     25},
    {"square:10%:200%:54ms:0.1111", 0, 0, {{0.001, 40}, {0.05, 2}}, 0},
    {"triangle:1k:9k:1", 0, 0, {{0, 1}, {0.25, 5}, {0.5, 9}, {1, 1}, {3.5, 9}}, 5},
    {"qtriangle:10k:30k:2:10k", 0, 0, {{0.1, 10}, {0.6, 20}, {1.1, 30}, {1.6, 20}}, 20},
    {"sine:0:40k:800ms", 0, 0, {{0, 0}, {0.2, 20}, {0.4, 40}, {3.2, 0}}, 20},
    {"etc-day",
     0,
     0,
     {{0, 19.989}, {4.0 * 8 / 24, 15.228}, {4.0 * 17 / 24, 23.235}, {4, 19.989}},
     20},
    {"etc-day:400ms", 0, 0, {{0, 19.989}, {0.4 * 17 / 24, 23.235}, {2, 19.989}}, 20},
};

static struct schedule
settled(int row)
{
    struct schedule parsed, s;
    const char *wrong = schedule_parse(&parsed, rows[row].text);
    ck_assert_msg(wrong == NULL, "%s: %s", rows[row].text, wrong);
    ck_assert(schedule_varies(&parsed));
    struct schedule_run run = {RATE, rows[row].lead_s, rows[row].quiet_s, RUN_S, 0};
    wrong = schedule_settle(&s, &parsed, &run);
    ck_assert_msg(wrong == NULL, "%s: %s", rows[row].text, wrong);
    schedule_fini(&parsed);
    return s;
}

TEST_ROWS(test_rates, rows, row->text)
{
    SCOPED(schedule_fini) struct schedule s = settled((int)(row - rows));
    for (int i = 0; i < 5; i++) {
        double at_s = row->known[i].at_s, rate = 1e3 * row->known[i].krate;
        if (rate > 0) {
            ck_assert_double_eq_tol(schedule_rate(&s, at_s + row->lead_s), rate,
                                    rate * 1e-3);
        }
    }
    if (row->kmean > 0) {
        ck_assert_double_eq_tol(s.mean / row->kmean, 1e3, 0.1);
    }
}

/* The integral is that of the rate, and schedule_time its inverse. */
TEST_ROWS(test_integral, rows, row->text)
{
    enum { STEPS = 400000 };
    SCOPED(schedule_fini) struct schedule s = settled((int)(row - rows));
    struct schedule_cursor c = {0};
    double until = row->lead_s + 1.5 * RUN_S, step = until / STEPS, sum = 0;
    for (int i = 0; i < STEPS; i++) {
        double middle = (i + 0.5) * step;
        sum += schedule_rate(&s, middle) * step;
        double exact = schedule_sum(&s, (i + 1) * step);
        expect(fabs(sum - exact) <= 1 + exact * 1e-4);
    }
    double last = 0, total = schedule_sum(&s, until);
    for (int i = 1; i <= 100000; i++) {
        double at_s = schedule_time(&s, &c, total * i / 100000);
        expect(at_s >= last - 1e-12 && at_s <= until + 1e-9);
        expect(fabs(schedule_sum(&s, at_s) - total * i / 100000) <= 1e-6 * total);
        last = at_s;
    }
}

static const struct {
    const char *text;
    double
        scv; /* of the gaps: of counts, the ratio of variance to mean in the long run */
} laws[] = {
    {"fixed", 0},     {"uniform", 1.0 / 3}, {"exponential", 1}, {"normal", 0.01},
    {"fb_ia", 1.449}, {"gamma:4", 0.25},    {"h2:4", 4},        {"weibull:2", 0.273},
};

/* Every law, by every schedule: each interval has as many arrivals as the rate brings, as
 * near as the law's counts come to their mean anywhere. */
TEST_LOOP(test_counts, ROWS(rows) * ROWS(laws))
{
    enum { BINS = 23 };
    int row = _i / ROWS(laws), l = _i % ROWS(laws);
    SCOPED(schedule_fini) struct schedule s = settled(row);
    SCOPED(arrivals_law_fini) struct arrivals_law law;
    SCOPED(arrivals_fini) struct arrivals a;
    double counts[BINS] = {0}, span_s = rows[row].lead_s + RUN_S;
    ck_assert_ptr_null(arrivals_parse(&law, laws[l].text));
    struct arrivals_conf conf = {&law, s.mean, START, 1, (uint64_t)_i, 1, 1, 0, &s};
    arrivals_init(&a, &conf);
    nsec_t last = START;
    for (;;) {
        nsec_t next = arrivals_next(&a);
        expect(next >= last);
        last = next;
        double at_s = (double)(next - START) / 1e9;
        if (at_s >= span_s) {
            break;
        }
        counts[(int)(at_s / span_s * BINS)]++;
    }
    for (int i = 0; i < BINS; i++) {
        double mean = schedule_sum(&s, span_s * (i + 1) / BINS) -
                      schedule_sum(&s, span_s * i / BINS);
        double sd = sqrt(laws[l].scv * mean);
        ck_assert_double_eq_tol(counts[i], mean, 5 * sd + 3);
    }
}

/* Two threads that share a stream, bent, take its arrivals in turn. */
TEST(test_shared_stream)
{
    SCOPED(schedule_fini) struct schedule s = settled(6);
    SCOPED(arrivals_law_fini) struct arrivals_law law;
    struct arrivals whole, part[2];
    ck_assert_ptr_null(arrivals_parse(&law, "fb_ia"));
    struct arrivals_conf conf = {&law, s.mean, START, 1, 2, 1, 1, 0, &s};
    arrivals_init(&whole, &conf);
    conf.every = 2;
    for (unsigned i = 0; i < 2; i++) {
        conf.first = i;
        arrivals_init(&part[i], &conf);
    }
    for (int i = 0; i < 20000; i++) {
        ck_assert_uint_eq(arrivals_next(&whole), arrivals_next(&part[i % 2]));
    }
    arrivals_fini(&whole);
    arrivals_fini(&part[0]);
    arrivals_fini(&part[1]);
}

TEST(test_file)
{
    static const char *const bad[] = {
        "", "1\n2\n", "0,1\n0,2\n", "2,1\n1,1\n", "0,-1\n1,1\n", "0,2e8\n", "-1,1\n"};
    struct schedule parsed, s;
    struct schedule_run run = {0, 0, 0, RUN_S, 0};
    ck_assert_ptr_null(schedule_parse(
        &parsed, scratch_word("file", "# s, a second\n1,100\n2, 300\n3\t0\n")));
    ck_assert(!schedule_has_shares(&parsed));
    ck_assert_ptr_null(schedule_settle(&s, &parsed, &run));
    schedule_fini(&parsed);
    ck_assert_double_eq_tol(schedule_rate(&s, 0.5), 100, 1e-9);
    ck_assert_double_eq_tol(schedule_rate(&s, 2.5), 300, 1e-9);
    ck_assert_double_eq_tol(schedule_sum(&s, 99), 500, 1e-9);
    ck_assert_double_eq_tol(s.mean, 125, 1e-9);
    struct schedule_cursor c = {0};
    ck_assert_double_eq_tol(schedule_time(&s, &c, 499), 3 - 1.0 / 300, 1e-9);
    ck_assert(isinf(schedule_time(&s, &c, 501)));
    schedule_fini(&s);
    expect_each(word, bad, schedule_parse(&s, scratch_word("file", word)) != NULL);
}

/* Periods much shorter than gaps cost no step each. */
TEST(test_many_periods)
{
    struct schedule parsed, s;
    struct schedule_cursor c = {0};
    struct schedule_run run = {0, 0, 0, 1e6, 0};
    ck_assert_ptr_null(schedule_parse(&parsed, "square:0:0.002:1us:0.5"));
    ck_assert_ptr_null(schedule_settle(&s, &parsed, &run));
    schedule_fini(&parsed);
    for (int i = 1; i <= 1000; i++) {
        ck_assert_double_eq_tol(schedule_time(&s, &c, i), i * 1000.0, 1e-3 * i + 1e-3);
    }
    schedule_fini(&s);
}

TEST(test_bad_texts)
{
    static const char *const texts[] = {
        "",          "const:1%%",   "ramp:1:2:3:4",   "steps:1:2:1%:1",
        "x",         "ramp:1:2:0",  "ramp:1:2e8:3",   "square:1:2:3:0",
        "ramp",      "ramp:1:x:2",  "ramp:1:2kk:3",   "square:1:2:3:1",
        "file:",     "ramp:1:2%:3", "square:1:2:3",   "square:1:2:3:x",
        "const:x",   "ramp:-1:2:3", "triangle:1:2",   "triangle:1:2:0",
        "const:k",   "ramp:1:2:3d", "steps:1:2:0:1",  "square:1:2:0:0.5",
        "ramp:1:2",  "steps:1:2:1", "file:/no/such",  "qtriangle:1:2:3:0",
        "const:1:2", "sine:1:2:-1", "ramp:1:2:3:4:5", "steps:1:1000000:1:1",
        "etc-day:0", "etc-day:1:2"};
    static const char *const empty[] = {"const:0", "ramp:0:0:1", "square:0:0:1:0.5",
                                        "const:0%", "steps:0:5:5:10"};
    struct schedule s, settled;
    struct schedule_run run = {100, 0, 0, RUN_S, 0};
    expect_each(word, texts, schedule_parse(&s, word) != NULL);
    for (int i = 0; i < ROWS(empty); i++) {
        ck_assert_ptr_null(schedule_parse(&s, empty[i]));
        ck_assert_msg(schedule_settle(&settled, &s, &run) != NULL, "%s", empty[i]);
        schedule_fini(&s);
    }
    ck_assert_ptr_null(schedule_parse(&s, "const"));
    ck_assert(!schedule_varies(&s));
    ck_assert_double_eq_tol(schedule_peak(&s, 7), 7, 1e-9);
    schedule_fini(&s);
    ck_assert_ptr_null(schedule_parse(&s, "square:10:50:1:0.5"));
    ck_assert_double_eq_tol(schedule_peak(&s, 7), 50, 1e-9);
    schedule_fini(&s);
    ck_assert_ptr_null(schedule_parse(&s, "const:200%"));
    ck_assert(schedule_has_shares(&s));
    ck_assert_double_eq_tol(schedule_peak(&s, 7), 14, 1e-9);
    run.rate = 6e7;
    ck_assert_ptr_nonnull(schedule_settle(&settled, &s, &run));
    schedule_fini(&s);
}
