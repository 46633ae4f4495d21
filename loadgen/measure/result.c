/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen/measure/little.h"
#include "loadgen/measure/steady.h"

bool
result_init(struct result *r, unsigned threads)
{
    *r = (struct result){.threads = threads, .hits_expected = -1};
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
    server_settings_release(&r->server_settings);
    tally_fini(&r->total);
    for (unsigned i = 0; i < r->classes_len; i++) {
        result_fini(&r->classes[i]);
    }
    free(r->classes);
    r->classes = NULL;
    r->classes_len = 0;
    free(r->samples);
    r->samples = NULL;
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
    r->hits_expected = first == 0 || r->hits_expected == of_class->hits_expected
                           ? of_class->hits_expected
                           : -1;
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

bool
result_misses_records(const struct result *r)
{
    bool misses =
        r->hits_expected == 1 && ctr_get(&r->total.hits) < ctr_get(&r->total.keys);
    for (unsigned i = 0; i < r->classes_len; i++) {
        misses = misses || result_misses_records(&r->classes[i]);
    }
    return misses;
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

/* A class that is alone is judged as the whole run, by one verdict: its own samples, taken at other
 * moments, might come to another one. */
static void
judge_classes(struct result *r)
{
    r->is_valid = r->is_slo_met = true;
    for (unsigned i = 0; i < r->classes_len; i++) {
        result_judge(&r->classes[i]);
        r->is_valid = r->is_valid && (r->classes_len == 1 || r->classes[i].is_valid);
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
judge_drift(const struct result *r, const struct check_limits *l)
{
    const struct {
        enum series_what what;
        double max;
    } limits[] = {{SERIES_LATENCY, l->limit[CHECK_STEADY]},
                  {SERIES_HIT_RATIO, RESULT_DRIFT_HITS_MAX}};
    struct check check = {false, true, 0, l->limit[CHECK_STEADY]};
    double values[SERIES_PIECES];
    if (r->series == NULL || r->is_uneven || r->is_antagonist || r->classes_len > 1 ||
        l->is_off[CHECK_STEADY]) {
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

struct gaps_apart
result_gaps(const struct result *r)
{
    return gaps_compare(r->total.gaps_intended, r->total.gaps_issued, r->gap_each);
}

/* Requests that failed were on their way too, and have no latency. */
static struct check
judge_little(const struct result *r, const struct check_limits *l, bool judged)
{
    const struct tally *t = &r->total;
    const struct hist *issue = r->all[FROM_ISSUE];
    struct little_sums s = {
        .on_their_way_ns = (double)ctr_get(&t->on_their_way),
        .answered =
            (double)(ctr_get(&t->done[TALLY_READ]) + ctr_get(&t->done[TALLY_UPDATE])),
        .latency_ns = hist_mean(issue),
        .longest_ns = (double)hist_max(issue),
        .at_edges = (double)ctr_get(&t->at_edges),
    };
    bool is_clean = tally_error_sum(t) + ctr_get(&t->lost) + ctr_get(&t->unanswered) == 0;
    bool applies =
        judged && is_clean && hist_count(issue) > 0 && hist_overflow(issue) == 0;
    return check_at_most(l, CHECK_LITTLE, applies, little_apart(&s));
}

/* The client's own lag over the latency that it measured; one within the other's order is
 * half of what is told. */
static struct check
judge_lateness(const struct result *r, const struct check_limits *l, bool paced)
{
    const struct hist *late = r->total.late;
    double scale = fmax((double)RESULT_LATENESS_FLOOR,
                        (double)hist_quantile(r->all[FROM_ISSUE], .99));
    return check_at_most(l, CHECK_LATENESS, paced && hist_count(late) > 0,
                         (double)hist_quantile(late, .99) / scale);
}

static double
longest_wait(const struct result *r)
{
    double most = 0;
    for (unsigned i = 0; i < r->threads; i++) {
        most = fmax(most, result_ratio(r->costs[i].wait_s, r->costs[i].elapsed_s));
    }
    return most;
}

/* Whether the client did what it was to do, in an open loop. */
static void
judge_pace(struct result *r, const struct check_limits *l, bool paced)
{
    const struct tally *t = &r->total;
    double offered = (double)ctr_get(&t->offered);
    struct gaps_apart gaps = result_gaps(r);
    r->checks[CHECK_RATE] = check_at_least(
        l, CHECK_RATE, paced, result_ratio((double)ctr_get(&t->good), offered));
    r->checks[CHECK_ADHERENCE] =
        check_at_least(l, CHECK_ADHERENCE, paced,
                       result_ratio((double)ctr_get(&t->within[WITHIN_1MS]), offered));
    r->checks[CHECK_ARRIVALS] =
        check_at_most(l, CHECK_ARRIVALS, paced && gaps.is_known, gaps.apart);
    r->checks[CHECK_LATENESS] = judge_lateness(r, l, paced);
    r->checks[CHECK_CPU_WAIT] = check_at_most(l, CHECK_CPU_WAIT, paced, longest_wait(r));
}

void
result_judge(struct result *r)
{
    struct check_limits defaults;
    const struct check_limits *l = r->limits;
    if (l == NULL) {
        check_limits_init(&defaults);
        l = &defaults;
    }
    judge_classes(r);
    const struct tally *t = &r->total;
    double good = (double)ctr_get(&t->good);
    double wrong = (double)ctr_get(&t->errors[TALLY_WRONG]);
    double errors = (double)tally_error_sum(t) - wrong;
    /* Several classes are judged each for itself. */
    bool judged = r->classes_len <= 1 && !r->is_antagonist;
    struct check *c = r->checks;
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        for (unsigned verb = 0; verb < TALLY_VERBS; verb++) {
            hist_merge(r->all[from], t->latency[from][verb]);
        }
    }
    judge_slo(r);
    c[CHECK_ANSWERS] = check_at_least(l, CHECK_ANSWERS, judged, good);
    c[CHECK_CPU] = check_at_most(l, CHECK_CPU, judged, busiest(r));
    judge_pace(r, l, judged && r->is_open && ctr_get(&t->offered) > 0);
    c[CHECK_LITTLE] = judge_little(r, l, judged);
    c[CHECK_STEAL] = check_at_most(l, CHECK_STEAL, judged && r->has_steal, r->steal);
    c[CHECK_ERRORS] = check_at_most(l, CHECK_ERRORS, judged, errors);
    c[CHECK_VALUES] = check_at_most(l, CHECK_VALUES, judged, wrong);
    c[CHECK_READER] = check_at_most(l, CHECK_READER, judged && r->is_replay,
                                    (double)ctr_get(&t->starved));
    c[CHECK_SERVED] =
        check_at_most(l, CHECK_SERVED, judged, (double)ctr_get(&t->unserved));
    c[CHECK_COMPLETE] =
        check_at_most(l, CHECK_COMPLETE, true, r->was_interrupted ? 1 : 0);
    c[CHECK_AGENTS] = check_at_most(l, CHECK_AGENTS, r->agents_len > 0, lost_agents(r));
    c[CHECK_AGENTS].is_good = c[CHECK_AGENTS].is_good || r->loss.is_accepted;
    c[CHECK_STEADY] = judge_drift(r, l);
    for (unsigned i = 0; i < CHECKS; i++) {
        r->is_valid = r->is_valid && (!c[i].applies || c[i].is_good);
    }
    if (r->classes_len == 1) {
        r->classes[0].is_valid = r->is_valid;
        memcpy(r->classes[0].checks, c, sizeof r->checks);
    }
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
        /* Half a request less, so that rounding cannot make it the next one. */
        return (struct quantile){hist_quantile(finite, (rank - 0.5) / (double)answered),
                                 false};
    }
    uint64_t waited =
        hist_quantile(waits, fmin(1, (rank - (double)answered) / (double)censored));
    uint64_t slowest = hist_max(finite);
    return (struct quantile){waited > slowest ? waited : slowest, true};
}
