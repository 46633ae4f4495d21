/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a search takes from a run of a class and an antagonist beside it: latencies, whether the
 * client kept up, and the share of errors, on made-up results.
 */
#include "loadgen/campaign/runner.h"

#include "check_main.h"

enum { SMALL, FLOOD, CLASSES };

static const nsec_t latency[CLASSES] = {NSEC_PER_USEC, NSEC_PER_MSEC};
static const double idle[CLASSES] = {0.2, 0.2};

static struct options options;
static struct result result;

/* A run of one second, by threads that are so busy, until it is judged. */
static void
make(const char *goal, const char *check, const double busy[CLASSES])
{
    static char words[][64] = {"mcload", "--class=small:{update=0.9}",
                               "--class=flood:{antagonist=flood}", "", ""};
    char *argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
    snprintf(words[3], sizeof words[3], "--search=%s", goal);
    snprintf(words[4], sizeof words[4], "--check=%s", check);
    ck_assert(options_parse(&options, 5, argv, stderr));
    result_init(&result, CLASSES, CLASSES);
    result.limits = &options.limits;
    for (unsigned i = 0; i < CLASSES; i++) {
        struct result *c = &result.classes[i];
        result_init(c, 1, 0);
        c->limits = &options.limits;
        c->is_antagonist = options.classes[i].antagonist != NULL;
        c->elapsed_s = 1;
        c->costs[0] = (struct cost){.elapsed_s = 1, .cpu_s = busy[i]};
        counters_good(&c->total, COUNTERS_READ, latency[i], latency[i], 100);
    }
}

static struct search_outcome
outcome(void)
{
    for (unsigned i = 0; i < CLASSES; i++) {
        result_add_class(&result, &result.classes[i], i);
    }
    result_judge(&result);
    return outcome_of_run(&result, &options, &options.goal, 1);
}

static void
tear_down(void)
{
    result_fini(&result);
    options_fini(&options);
}

FIXTURE(NULL, tear_down);

/* An antagonist may be as busy as it likes, and so may all where no limit is wanted. */
static const struct {
    const char *check;
    double busy[CLASSES];
    bool was_interrupted, is_valid;
} clients[] = {
    {"client_cpu:0.95", {0.2, 0.3}, false, true},
    {"client_cpu:0.95", {0.2, 1}, false, true},
    {"client_cpu:0.95", {1, 0.3}, false, false},
    {"client_cpu:0.95", {0.2, 0.3}, true, false},
    {"client_cpu:0.1", {0.2, 0.3}, false, false},
    {"client_cpu:off", {1, 1}, false, true},
};

TEST_ROWS(test_client, clients, row->check)
{
    make("p99:1ms", row->check, row->busy);
    result.was_interrupted = row->was_interrupted;
    struct search_outcome out = outcome();
    ck_assert_int_eq(out.is_valid, row->is_valid);
}

/* Errors are of all the run, warm-up included, and so is what they are a share of; those of an
 * antagonist count where the goal is about it. */
static const struct {
    const char *goal;
    unsigned errors[CLASSES];
    double share;
} faults[] = {
    {"p99:1ms", {0, 500}, 0},
    {"p99:1ms,err<1%", {10, 500}, 10.0 / 1000},
    {"p99:1ms,class=small", {10, 0}, 10.0 / 1000},
    {"p99:1ms,class=flood", {10, 250}, 250.0 / 1000},
};

TEST_ROWS(test_errors, faults, row->goal)
{
    make(row->goal, "errors:off", idle);
    for (unsigned i = 0; i < CLASSES; i++) {
        struct counters *t = &result.classes[i].total;
        ctr_add(&t->errors[COUNTERS_SERVER_ERROR], row->errors[i]);
        ctr_add(&t->answered, 1000 - row->errors[i]);
    }
    ck_assert_double_eq_tol(outcome().errors, row->share, 1e-12);
}

/* Those of the class that is varied, where the goal names none. */
static const struct {
    const char *goal;
    unsigned class;
} goals[] = {{"p50:1ms", SMALL}, {"p50:1ms,class=flood", FLOOD}};

/* A goal for gets: of what was not answered a tenth were gets, as the mix has it. */
TEST(test_reads_without_answer)
{
    make("99.5:1000", "errors:off", idle);
    struct counters *t = &result.classes[SMALL].total;
    counters_good(t, COUNTERS_READ, latency[SMALL], latency[SMALL], 890);
    counters_good(t, COUNTERS_UPDATE, latency[FLOOD], latency[FLOOD], 9000);
    for (unsigned i = 0; i < 10; i++) {
        counters_censored(t, &t->unsent, NSEC_PER_SEC);
    }
    ck_assert_double_eq_tol(outcome().value, (double)latency[SMALL],
                            (double)latency[SMALL] / 100);
}

/* Of those that were sent it is known. */
static const struct {
    const char *what;
    enum counters_verb verb;
    bool is_measured;
} lost_ones[] = {{"gets", COUNTERS_READ, false}, {"sets", COUNTERS_UPDATE, true}};

TEST_ROWS(test_reads_lost, lost_ones, row->what)
{
    make("99.5:1000", "errors:off", idle);
    struct counters *t = &result.classes[SMALL].total;
    counters_good(t, COUNTERS_READ, latency[SMALL], latency[SMALL], 890);
    for (unsigned i = 0; i < 10; i++) {
        counters_censored(t, i % 2 == 0 ? &t->lost[row->verb] : &t->unanswered[row->verb],
                          NSEC_PER_SEC);
    }
    ck_assert_int_eq(isfinite(outcome().value) != 0, row->is_measured);
}

/* What was answered late counts as long as the server kept up, and in doubt it did not. */
static const struct {
    const char *what;
    int64_t steps[8]; /* more that waited, from piece to piece */
    double achieved;
    bool is_unsure;
} paces[] = {{"as many wait", {30, 0, 0, 0, 0, 0, 0, 0}, 0.98, false},
             {"more at the end", {0, 0, 0, 0, 0, 0, 0, 20}, 0.97, true},
             {"more and more", {5, 5, 5, 5, 5, 5, 5, 5}, 0.97, false}};

TEST_ROWS(test_achieved, paces, row->what)
{
    make("p99:1ms", "errors:off", idle);
    struct result *small = &result.classes[SMALL];
    small->is_open = true;
    small->series = series_create(0, false);
    small->series->count = sizeof row->steps / sizeof row->steps[0];
    for (unsigned i = 0; i < small->series->count; i++) {
        small->series->pieces[i].backlog = row->steps[i];
        small->series->pieces[i].requests = 120;
    }
    counters_good(&small->total, COUNTERS_READ, latency[SMALL], latency[SMALL],
                  980 - 100); /* behind those of make() */
    ctr_add(&small->total.offered, 1000);
    ctr_add(&small->total.done[COUNTERS_READ], 970);
    struct search_outcome out = outcome();
    ck_assert_double_eq_tol(out.achieved, row->achieved, 1e-9);
    ck_assert_int_eq(out.is_unsure, row->is_unsure);
}

TEST_ROWS(test_latencies, goals, row->goal)
{
    make(row->goal, "errors:off", idle);
    double wanted = (double)latency[row->class];
    ck_assert_double_eq_tol(outcome().value, wanted, wanted / 100);
}
