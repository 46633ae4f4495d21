/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/result.h"

#include <float.h>
#include <math.h>

#include "base/alloc.h"
#include "loadgen/measure/little.h"
#include "loadgen/measure/steady.h"

void
result_init(struct result *r, unsigned threads, unsigned classes)
{
    *r = (struct result){.threads = threads, .hits_expected = -1};
    counters_init(&r->total);
    r->costs = alloc_zeroed(threads, sizeof *r->costs);
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        r->all[from] = counters_hist(COUNTERS_SUB_BITS);
    }
    r->classes = classes > 0 ? alloc_zeroed(classes, sizeof *r->classes) : NULL;
    r->classes_len = classes;
}

void
result_fini(struct result *r)
{
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        hist_destroy(&r->all[from]);
    }
    series_destroy(&r->series);
    evenness_destroy(&r->evenness);
    server_stats_destroy(&r->server_stats);
    server_settings_release(&r->server_settings);
    counters_fini(&r->total);
    for (unsigned i = 0; i < r->classes_len; i++) {
        result_fini(&r->classes[i]);
    }
    free(r->costs);
    free(r->classes);
    free(r->samples);
    free(r->agents);
    *r = (struct result){0};
}

void
result_add_class(struct result *r, const struct result *of_class, unsigned first)
{
    must(first + of_class->threads <= r->threads);
    counters_merge(&r->total, &of_class->total);
    memcpy(&r->costs[first], of_class->costs, of_class->threads * sizeof *r->costs);
    r->qps += of_class->qps;
    r->is_open = (first == 0 || r->is_open) && of_class->is_open;
    r->hits_expected = first == 0 || r->hits_expected == of_class->hits_expected
                           ? of_class->hits_expected
                           : -1;
    r->is_uneven = r->is_uneven || of_class->is_uneven;
    r->is_replay = r->is_replay || of_class->is_replay;
    r->is_local = r->is_local || of_class->is_local;
    r->has_steal = r->has_steal || of_class->has_steal;
    r->steal = fmax(r->steal, of_class->steal);
    r->was_interrupted = r->was_interrupted || of_class->was_interrupted;
    r->elapsed_s = fmax(r->elapsed_s, of_class->elapsed_s);
    if (r->evenness != NULL && of_class->evenness != NULL) {
        evenness_merge(r->evenness, of_class->evenness);
    }
}

double
result_ratio(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

double
result_busy(const struct cost *cost)
{
    /* A poll in which the thread was preempted is as long as its wait, and used no CPU meanwhile. Where it
     * waited elsewhere this is too much, by as long as that. */
    double polled_s = fmax(0, cost->idle_s - cost->wait_s);
    return result_ratio(fmax(0, cost->cpu_s - polled_s), cost->elapsed_s);
}

uint64_t
result_censored(const struct counters *t)
{
    return ctr_get(&t->skipped) + ctr_get(&t->unsent) + counters_sum(t->lost) +
           counters_sum(t->unanswered);
}

void
result_settle_waits(struct counters *t)
{
    uint64_t censored = result_censored(t), known = hist_count(t->waits);
    hist_record_n(t->waits, 0, censored > known ? censored - known : 0);
}

uint64_t
result_censored_updates(const struct counters *t, double share_of_updates)
{
    double not_sent = (double)(ctr_get(&t->skipped) + ctr_get(&t->unsent));
    return (uint64_t)(not_sent * share_of_updates + 0.5) +
           ctr_get(&t->lost[COUNTERS_UPDATE]) + ctr_get(&t->unanswered[COUNTERS_UPDATE]);
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

/* How much of the window had gone by when the last process began. */
static double
late_start(const struct result *r)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < r->agents_len; i++) {
        most = r->agents[i].start_error > most ? r->agents[i].start_error : most;
    }
    return result_ratio((double)most, r->elapsed_s * 1e9);
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

/* With fewer than 100 / (100 - p) requests none has to be slower than the percentile p, which then is not
 * known. */
static void
judge_slo(struct result *r)
{
    if (r->slo.percent == 0) {
        return;
    }
    double all = (double)(hist_count(r->all[r->from]) + result_censored(&r->total));
    double beyond = 100 - r->slo.percent;
    r->slo_needs = beyond > 0 ? (uint64_t)ceil(100 / beyond - 1e-6) : 1;
    r->slo_value = result_at(r, r->from, r->slo.percent / 100);
    r->is_slo_known = all >= (double)r->slo_needs;
    r->is_slo_met =
        r->is_slo_known && !r->slo_value.is_bound && r->slo_value.ns <= r->slo.limit;
}

const struct counters *
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

/* Requests that failed were on their way too, and have no latency: *applies becomes false. */
static double
little_of(const struct result *r, bool *applies)
{
    const struct counters *t = &r->total;
    const struct hist *issue = r->all[FROM_ISSUE];
    struct little_sums s = {
        .on_their_way_ns =
            (double)ctr_get(&t->on_their_way) - (double)ctr_get(&t->unmeasured),
        .answered = (double)hist_count(issue),
        .latency_ns = hist_mean(issue),
        .longest_ns = (double)hist_max(issue),
        .at_edges = (double)ctr_get(&t->at_edges),
    };
    *applies =
        counters_error_sum(t) + counters_sum(t->lost) + counters_sum(t->unanswered) ==
            0 &&
        hist_count(issue) > 0 && hist_overflow(issue) == 0;
    return little_apart(&s);
}

/* The client's own lag over the latency that it measured; one within the other's order is
 * half of what is told. */
static double
lateness_of(const struct result *r)
{
    double scale = fmax((double)RESULT_LATENESS_FLOOR,
                        (double)hist_quantile(r->all[FROM_ISSUE], .99));
    return (double)hist_quantile(r->total.late, .99) / scale;
}

double
result_longest_wait(const struct result *r)
{
    double most = 0;
    for (unsigned i = 0; i < r->threads; i++) {
        most = fmax(most, result_ratio(r->costs[i].wait_s, r->costs[i].elapsed_s));
    }
    return most;
}

/* What was left at the end without having been sent is counted only there. As many answers as
 * requests, some of them to what was sent before, are no sign of a server that falls behind. */
static enum result_pace
pace_of(const struct result *r)
{
    const struct counters *t = &r->total;
    double unsent = (double)ctr_get(&t->unsent), offered = (double)ctr_get(&t->offered);
    if (!r->is_open || r->series == NULL || counters_done(t) >= ctr_get(&t->offered)) {
        return PACE_KEPT;
    }
    struct series_growth g = series_growth(r->series);
    if (unsent > RESULT_BEHIND * offered) {
        return PACE_BEHIND;
    }
    if (g.backlog <= RESULT_BEHIND * (g.answered + g.backlog)) {
        return PACE_KEPT;
    }
    return g.backlog > RESULT_BEHIND_T * g.chance ? PACE_BEHIND : PACE_UNSURE;
}

uint64_t
result_achieved_of(const struct counters *part, bool is_behind)
{
    return is_behind ? counters_done(part) : ctr_get(&part->good);
}

uint64_t
result_achieved(const struct result *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < r->classes_len; i++) {
        sum += result_achieved(&r->classes[i]);
    }
    return r->classes_len > 0 ? sum
                              : result_achieved_of(&r->total, r->pace == PACE_BEHIND);
}

/* All but those of the search, which comes to its own end. Several classes are judged each
 * for itself, and what a client is to do only in an open loop. */
static void
judge(struct result *r, const struct check_limits *l)
{
    const struct counters *t = &r->total;
    double offered = (double)ctr_get(&t->offered), good = (double)ctr_get(&t->good);
    double wrong = (double)ctr_get(&t->errors[COUNTERS_WRONG]);
    double in_vain = (double)ctr_get(&t->in_vain); /* also of what was not sent whole */
    bool own = r->classes_len <= 1 && !r->is_antagonist;
    bool paced = own && r->is_open && offered > 0, has_little;
    double little = little_of(r, &has_little);
    struct gaps_apart gaps = result_gaps(r);
    const struct {
        enum result_check check;
        bool applies;
        double value;
    } rows[] = {
        {CHECK_ANSWERS, own, r->is_open && good > 0 ? good : (double)counters_done(t)},
        {CHECK_CPU, own, busiest(r)},
        {CHECK_RATE, paced, result_ratio((double)result_achieved(r), offered)},
        {CHECK_ADHERENCE, paced,
         result_ratio((double)ctr_get(&t->within[WITHIN_1MS]), offered)},
        {CHECK_ERRORS, own, (double)counters_error_sum(t) - wrong},
        {CHECK_COMPLETE, true, r->was_interrupted},
        {CHECK_AGENTS, r->agents_len > 0, lost_agents(r)},
        {CHECK_START, r->agents_len > 0, late_start(r)},
        {CHECK_VALUES, own, wrong},
        {CHECK_READER, own && r->is_replay, (double)ctr_get(&t->starved)},
        {CHECK_ARRIVALS, paced && gaps.is_known, gaps.apart},
        {CHECK_LITTLE, own && has_little, little},
        {CHECK_LATENESS, paced && hist_count(t->late) > 0, lateness_of(r)},
        {CHECK_STEAL, own && r->has_steal, r->steal},
        {CHECK_CPU_WAIT, own, result_longest_wait(r)},
        {CHECK_SERVED, own, (double)ctr_get(&t->unserved)},
        {CHECK_UNANSWERED, own,
         result_ratio(in_vain, fmax(in_vain, (double)ctr_get(&t->on_their_way)))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        r->checks[rows[i].check] =
            check_of(l, rows[i].check, rows[i].applies, rows[i].value);
    }
    r->checks[CHECK_AGENTS].is_good |= r->loss.is_accepted;
    r->checks[CHECK_STEADY] = judge_drift(r, l);
}

void
result_judge(struct result *r)
{
    struct check_limits defaults;
    check_limits_init(&defaults);
    judge_classes(r);
    for (unsigned from = 0; from < FROM_COUNT; from++) {
        for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
            hist_merge(r->all[from], r->total.latency[from][verb]);
        }
    }
    judge_slo(r);
    r->pace = pace_of(r);
    judge(r, r->limits != NULL ? r->limits : &defaults);
    for (unsigned i = 0; i < CHECKS; i++) {
        r->is_valid = r->is_valid && (!r->checks[i].applies || r->checks[i].is_good);
    }
    if (r->classes_len == 1) {
        r->classes[0].is_valid = r->is_valid;
        memcpy(r->classes[0].checks, r->checks, sizeof r->checks);
    }
}

struct quantile
result_quantile(const struct hist *finite, const struct hist *waits, uint64_t censored,
                double q)
{
    uint64_t answered = hist_count(finite);
    uint64_t all = answered + censored;
    /* A share such as 0.07 may come out above what was meant. */
    double rank = fmax(1, ceil(q * (double)all * (1 - 4 * DBL_EPSILON)));
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

struct quantile
result_at(const struct result *r, enum counters_from from, double q)
{
    return result_quantile(r->all[from], r->total.waits, result_censored(&r->total), q);
}

/* ---- phases ---------------------------------------------------------------------------- */

/* A phase that ends before it begins did not come to pass. */
static struct result_span
span_of(nsec_t opened, nsec_t start, nsec_t stop)
{
    stop = stop > start ? stop : start;
    return (struct result_span){
        (double)(start - opened) / (double)NSEC_PER_SEC,
        (double)(stop - opened) / (double)NSEC_PER_SEC,
    };
}

void
result_phases(const struct phase_times *t, struct result_span phases[PHASES])
{
    nsec_t warm = t->end < t->start ? t->end : t->start;
    phases[PHASE_LOAD] =
        span_of(t->opened, t->opened, t->is_first ? t->ready : t->opened);
    phases[PHASE_WARMUP] = span_of(t->opened, t->begin, warm);
    phases[PHASE_MEASURE] = span_of(t->opened, t->start, t->end);
    phases[PHASE_DRAIN] = span_of(t->opened, t->end, t->drained);
}

const char *const result_phase_names[PHASES] = {
    [PHASE_LOAD] = "load",
    [PHASE_WARMUP] = "warmup",
    [PHASE_MEASURE] = "measure",
    [PHASE_DRAIN] = "drain",
};
