/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/result.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/measure/steady.h"

bool
result_init(struct result *r, unsigned threads)
{
    *r = (struct result){.threads = threads};
    bool has_tally = tally_init(&r->total);
    r->costs = calloc(threads, sizeof *r->costs);
    bool is_good = has_tally && r->costs != NULL;
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        r->all[from] = hist_create(TALLY_SUB_BITS, TALLY_MAX_NS);
        is_good = is_good && r->all[from] != NULL;
    }
    if (!is_good) {
        result_fini(r);
    }
    return is_good;
}

void
result_fini(struct result *r)
{
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        hist_destroy(&r->all[from]);
    }
    free(r->costs);
    r->costs = NULL;
    series_destroy(&r->series);
    evenness_destroy(&r->evenness);
    server_stats_destroy(&r->server_stats);
    tally_fini(&r->total);
    for (unsigned i = 0; i < r->classes_len; i++) {
        result_fini(&r->classes[i]);
    }
    free(r->classes);
    r->classes = NULL;
    r->classes_len = 0;
    free(r->agents);
    r->agents = NULL;
    r->agents_len = 0;
}

bool
result_init_classes(struct result *r, unsigned threads, unsigned classes)
{
    if (!result_init(r, threads)) {
        return false;
    }
    r->classes = calloc(classes, sizeof *r->classes);
    if (r->classes == NULL) {
        result_fini(r);
        return false;
    }
    r->classes_len = classes;
    return true;
}

bool
result_add_class(struct result *r, const struct result *of_class, unsigned first)
{
    must(first + of_class->threads <= r->threads);
    tally_merge(&r->total, &of_class->total);
    memcpy(&r->costs[first], of_class->costs, of_class->threads * sizeof *r->costs);
    r->qps += of_class->qps;
    r->is_open = (first == 0 || r->is_open) && of_class->is_open;
    r->was_loaded = (first == 0 || r->was_loaded) && of_class->was_loaded;
    r->is_uneven = r->is_uneven || of_class->is_uneven;
    r->is_local = r->is_local || of_class->is_local;
    r->was_interrupted = r->was_interrupted || of_class->was_interrupted;
    r->elapsed_s = fmax(r->elapsed_s, of_class->elapsed_s);
    return r->evenness == NULL || of_class->evenness == NULL ||
           evenness_merge(r->evenness, of_class->evenness);
}

double
result_ratio(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

double
result_busy(const struct cost *cost)
{
    return result_ratio(fmax(0, cost->cpu_s - cost->idle_s), cost->elapsed_s);
}

uint64_t
result_censored(const struct tally *t)
{
    return ctr_get(&t->skipped) + ctr_get(&t->unsent) + ctr_get(&t->lost) +
           ctr_get(&t->unanswered);
}

static double
busiest(const struct result *r)
{
    double most = 0;
    for (unsigned i = 0; i < r->threads; i++) {
        most = fmax(most, result_busy(&r->costs[i]));
    }
    return most;
}

static double
lost_agents(const struct result *r)
{
    double lost = 0;
    for (unsigned i = 0; i < r->agents_len; i++) {
        lost += r->agents[i].is_lost ? 1 : 0;
    }
    return lost;
}

static void
judge_classes(struct result *r)
{
    r->is_valid = r->is_slo_met = true;
    for (unsigned i = 0; i < r->classes_len; i++) {
        result_judge(&r->classes[i]);
        r->is_valid = r->is_valid && r->classes[i].is_valid;
        r->is_slo_met = r->is_slo_met && r->classes[i].is_slo_met;
    }
}

/* Without requests nothing was served at all. */
static void
judge_slo(struct result *r)
{
    if (r->slo.percent == 0) {
        return;
    }
    uint64_t censored = result_censored(&r->total);
    const struct hist *all = r->all[r->from];
    r->slo_value = result_quantile(all, r->total.waits, censored, r->slo.percent / 100);
    r->is_slo_met = hist_count(all) + censored > 0 && !r->slo_value.is_bound &&
                    r->slo_value.ns <= r->slo.limit;
}

const struct tally *
result_shown(const struct result *r)
{
    return r->has_shown ? &r->classes[r->shown].total : &r->total;
}

/* The value is the change of the mean latency, or, when that is within its limit, of the hit
 * ratio; 0 when it may be chance. */
static struct check
judge_drift(const struct result *r)
{
    static const struct {
        enum series_what what;
        double max;
    } limits[] = {{SERIES_LATENCY, RESULT_DRIFT_MAX},
                  {SERIES_HIT_RATIO, RESULT_DRIFT_HITS_MAX}};
    struct check check = {false, true, 0, RESULT_DRIFT_MAX};
    double values[SERIES_PIECES];
    if (r->series == NULL || r->is_uneven || r->is_antagonist || r->classes_len > 1) {
        return check;
    }
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0] && check.is_good; i++) {
        unsigned n = series_values(r->series, limits[i].what, values);
        struct drift drift = drift_of(values, n);
        bool is_chance = n < CI_BATCHES_MIN || drift.t <= RESULT_DRIFT_T;
        check.applies = check.applies || n >= CI_BATCHES_MIN;
        check.value = is_chance ? 0 : fabs(drift.change);
        check.limit = limits[i].max;
        check.is_good = check.value <= check.limit;
    }
    return check;
}

void
result_judge(struct result *r)
{
    judge_classes(r);
    const struct tally *t = &r->total;
    double offered = (double)ctr_get(&t->offered);
    double good = (double)ctr_get(&t->good);
    double cpu = busiest(r);
    double rate = result_ratio(good, offered);
    double adherence = result_ratio((double)ctr_get(&t->within[WITHIN_1MS]), offered);
    double wrong = (double)ctr_get(&t->errors[TALLY_WRONG]);
    double errors = (double)tally_error_sum(t) - wrong;
    /* Several classes are judged each for itself. */
    bool judged = r->classes_len <= 1 && !r->is_antagonist;
    bool paced = judged && r->is_open && offered > 0;
    struct check *c = r->checks;
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        for (unsigned verb = 0; verb < TALLY_VERBS; verb++) {
            hist_merge(r->all[from], t->latency[from][verb]);
        }
    }
    judge_slo(r);
    c[CHECK_ANSWERS] = (struct check){judged, good > 0, good, 1};
    c[CHECK_CPU] = (struct check){judged, cpu <= RESULT_CPU_MAX, cpu, RESULT_CPU_MAX};
    c[CHECK_RATE] = (struct check){paced, rate >= RESULT_RATE_MIN, rate, RESULT_RATE_MIN};
    c[CHECK_ADHERENCE] = (struct check){paced, adherence >= RESULT_ADHERENCE_MIN,
                                        adherence, RESULT_ADHERENCE_MIN};
    c[CHECK_ERRORS] = (struct check){judged, errors == 0, errors, 0};
    c[CHECK_VALUES] = (struct check){judged, wrong == 0, wrong, 0};
    c[CHECK_COMPLETE] =
        (struct check){true, !r->was_interrupted, r->was_interrupted ? 1 : 0, 0};
    double lost = lost_agents(r);
    c[CHECK_AGENTS] =
        (struct check){r->agents_len > 0, lost == 0 || r->loss.is_accepted, lost, 0};
    c[CHECK_STEADY] = judge_drift(r);
    for (unsigned i = 0; i < CHECKS; i++) {
        r->is_valid = r->is_valid && (!c[i].applies || c[i].is_good);
    }
}

static const char *const check_names[] = {
    [CHECK_ANSWERS] = "answers",     [CHECK_CPU] = "client_cpu",
    [CHECK_RATE] = "achieved_rate",  [CHECK_ADHERENCE] = "adherence_1ms",
    [CHECK_ERRORS] = "errors",       [CHECK_COMPLETE] = "interrupted",
    [CHECK_SEARCH] = "search",       [CHECK_AGENTS] = "agents_lost",
    [CHECK_STEADY] = "stationarity", [CHECK_VALUES] = "verification",
};
static_assert(sizeof check_names / sizeof check_names[0] == CHECKS, "one name each");

const char *
result_check_name(enum result_check check)
{
    must((unsigned)check < CHECKS);
    return check_names[check];
}

struct quantile
result_quantile(const struct hist *finite, const struct hist *waits, uint64_t censored,
                double q)
{
    uint64_t answered = hist_count(finite);
    uint64_t all = answered + censored;
    double rank = fmax(1, ceil(q * (double)all));
    if (all == 0) {
        return (struct quantile){0, false};
    }
    if (rank <= (double)answered) {
        return (struct quantile){hist_quantile(finite, rank / (double)answered), false};
    }
    uint64_t waited =
        hist_quantile(waits, fmin(1, (rank - (double)answered) / (double)censored));
    uint64_t slowest = hist_max(finite);
    return (struct quantile){waited > slowest ? waited : slowest, true};
}
