/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/search/search.h"

#include <math.h>

#define BRACKET_START 0.1 /* of the ceiling */
#define BRACKET_END 0.001 /* the least rate tried, of the ceiling */
#define CEILING_PROBES 6
#define CEILING_WIDTH 0.05 /* it is only where to start from */
#define CEILING_STEP 1.1
#define RATE_END 4.0 /* of the peak: what no rate up to here misses is met by all */
#define RETRIES_MAX 2
#define ROUNDS_MAX 3
#define STEPS_SMALL 2
#define CONFIRM_RUNS (3 * SEARCH_REPEATS)
#define WIDTH_MAX 2.1 /* tolerances between low and high of a decided answer */

/* ---- judging ------------------------------------------------------------------------- */

static enum search_verdict
judge(const struct search *s, const struct search_outcome *o, enum search_bound *bound)
{
    *bound = SEARCH_BY_NOTHING;
    if (!o->is_valid) {
        *bound = SEARCH_BY_CLIENT;
    } else if (o->achieved < SEARCH_ACHIEVED_MIN) {
        *bound = SEARCH_BY_RATE;
    } else if (o->errors > s->conf.errors_max) {
        *bound = SEARCH_BY_ERRORS;
    }
    if (*bound != SEARCH_BY_NOTHING) {
        return *bound == SEARCH_BY_RATE && o->is_unsure ? SEARCH_OPEN : SEARCH_MISSED;
    }
    if (s->limit == 0) {
        return SEARCH_MET; /* all that can be asked for yet */
    }
    *bound = o->value > s->limit ? SEARCH_BY_LATENCY : SEARCH_BY_NOTHING;
    return o->high <= s->limit ? SEARCH_MET
           : o->low > s->limit ? SEARCH_MISSED
                               : SEARCH_OPEN;
}

static bool
leans_to_met(const struct search_point *p)
{
    return p->bound == SEARCH_BY_NOTHING;
}

static bool
is_affordable(const struct search *s, unsigned runs)
{
    return s->probes + runs <= SEARCH_PROBES_MAX &&
           s->spent_s + s->longest_s * runs <= s->conf.budget_s;
}

static double
capped(const struct search *s, double rate)
{
    return s->conf.rate_max > 0 ? fmin(rate, s->conf.rate_max) : rate;
}

static void
finish(struct search *s)
{
    s->probe = (struct search_probe){.stage = SEARCH_DONE};
}

static void
probe_at(struct search *s, enum search_stage stage, double rate)
{
    if (!is_affordable(s, 1)) {
        finish(s);
        return;
    }
    s->probe = (struct search_probe){.stage = stage, .rate = rate, .length = 1};
    s->retries = 0;
}

/* ---- confirming ---------------------------------------------------------------------- */

static void
confirm_next(struct search *s)
{
    if (!is_affordable(s, 1)) {
        finish(s);
        return;
    }
    unsigned i = s->first + s->batch_runs % s->batch;
    s->probe = (struct search_probe){SEARCH_CONFIRM, s->confirmed[i].rate, 1, true};
    s->retries = 0;
}

static void
confirm_add(struct search *s, double rate)
{
    must(s->confirmed_count < SEARCH_PROBES_MAX);
    s->confirmed[s->confirmed_count++] = (struct search_point){
        .rate = rate,
        .verdict = SEARCH_OPEN,
    };
    s->batch++;
}

static void
confirm_start(struct search *s, double answer)
{
    double step = s->conf.tolerance * answer;
    s->answer = answer;
    s->below = s->above = 0;
    s->first = s->confirmed_count;
    s->batch = s->batch_runs = 0;
    confirm_add(s, answer - step);
    confirm_add(s, answer);
    if (capped(s, answer + step) > answer) {
        confirm_add(s, capped(s, answer + step));
    }
    confirm_next(s);
}

/* All runs must agree, and for a latency their mean must be clear of the limit, too. */
static enum search_verdict
confirmed_verdict(const struct search *s, const struct search_point *p)
{
    if (p->runs < SEARCH_REPEATS || (p->met > 0 && p->met < p->runs)) {
        return SEARCH_OPEN;
    }
    bool is_latency = p->met == p->runs || p->bound == SEARCH_BY_LATENCY;
    double mean = p->value_sum / p->runs;
    double width = sqrt(p->width_sum) / p->runs;
    if (is_latency && isfinite(mean) && fabs(mean - s->limit) <= width) {
        return SEARCH_OPEN;
    }
    return p->met > 0 ? SEARCH_MET : SEARCH_MISSED;
}

struct span {
    double low, high; /* 0: none */
    enum search_bound bound;
};

/* The largest rate that is clearly met and the least that is clearly missed; where they
 * overlap, the range around the overlap. */
static struct span
span_of(const struct search_point *points, unsigned count)
{
    double met = 0, missed = INFINITY;
    struct span span = {.high = INFINITY};
    for (unsigned i = 0; i < count; i++) {
        met = points[i].verdict == SEARCH_MET ? fmax(met, points[i].rate) : met;
        missed =
            points[i].verdict == SEARCH_MISSED ? fmin(missed, points[i].rate) : missed;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct search_point *p = &points[i];
        if (p->verdict == SEARCH_MET && p->rate < missed) {
            span.low = fmax(span.low, p->rate);
        }
        if (p->verdict == SEARCH_MISSED && p->rate > met && p->rate < span.high) {
            span.high = p->rate;
            span.bound = p->bound;
        }
    }
    span.high = isinf(span.high) ? 0 : span.high;
    return span;
}

/* Runs that do not agree, between the two: no further run would make it narrower. */
static bool
is_noisy(const struct search *s, const struct span *span)
{
    for (unsigned i = 0; i < s->confirmed_count; i++) {
        const struct search_point *p = &s->confirmed[i];
        if (p->rate > span->low && p->rate < span->high && p->verdict == SEARCH_OPEN &&
            fabs(p->rate - s->answer) > s->conf.tolerance * s->answer / 2) {
            return true;
        }
    }
    return false;
}

static double
highest_confirmed(const struct search *s)
{
    double highest = 0;
    for (unsigned i = 0; i < s->confirmed_count; i++) {
        highest = fmax(highest, s->confirmed[i].rate);
    }
    return highest;
}

static void bisect_next(struct search *s);

static bool
is_narrow(const struct search *s, double low, double high)
{
    return high - low <= WIDTH_MAX * s->conf.tolerance * (low + high) / 2;
}

/* The first steps out are small, for answers that are nearly right. */
static double
step_of(unsigned n)
{
    return n < STEPS_SMALL ? exp2(n) : exp2(STEPS_SMALL + 2.0 * (n - STEPS_SMALL));
}

/* A batch is complete: further out, or another round, or the end. */
static void
confirm_judge(struct search *s)
{
    struct span span = span_of(s->confirmed, s->confirmed_count);
    double tolerance = s->conf.tolerance;
    s->first = s->confirmed_count;
    s->batch = s->batch_runs = 0;
    double down = s->answer * (1 - tolerance * step_of(s->below + 1));
    double up = capped(s, s->answer * (1 + tolerance * step_of(s->above + 1)));
    bool is_top = up <= highest_confirmed(s) || up > RATE_END * fmax(s->peak, s->ceiling);
    if (span.low == 0 && down > 0) {
        s->below++;
        confirm_add(s, down);
    }
    if (span.high == 0 && !is_top) {
        s->above++;
        confirm_add(s, up);
    }
    if (s->batch > 0) {
        confirm_next(s);
    } else if (span.low > 0 && span.high > 0 && !is_narrow(s, span.low, span.high) &&
               !is_noisy(s, &span) && s->rounds < ROUNDS_MAX) {
        s->rounds++;
        s->low = span.low;
        s->high = span.high;
        bisect_next(s);
    } else {
        finish(s);
    }
}

static void
confirm_tell(struct search *s, const struct search_outcome *o, enum search_bound bound)
{
    struct search_point *p = &s->confirmed[s->first + s->batch_runs % s->batch];
    double width = fmax(o->high - o->value, o->value - o->low);
    p->outcome = *o;
    p->runs++;
    p->met += bound == SEARCH_BY_NOTHING ? 1 : 0;
    p->bound = bound != SEARCH_BY_NOTHING ? bound : p->bound;
    p->value_sum += o->value;
    p->width_sum += width * width;
    p->verdict = confirmed_verdict(s, p);
    s->batch_runs++;
    if (s->batch_runs == s->batch * SEARCH_REPEATS) {
        confirm_judge(s);
    } else {
        confirm_next(s);
    }
}

/* ---- bisecting ----------------------------------------------------------------------- */

static void
bisect_next(struct search *s)
{
    if (s->high - s->low <= s->conf.tolerance * s->high ||
        !is_affordable(s, CONFIRM_RUNS + 1)) {
        confirm_start(s, (s->low + s->high) / 2);
    } else {
        probe_at(s, SEARCH_BISECT, (s->low + s->high) / 2);
    }
}

static void
bisect_tell(struct search *s, const struct search_point *p)
{
    if (leans_to_met(p)) {
        s->low = p->rate;
    } else {
        s->high = p->rate;
    }
    bisect_next(s);
}

/* ---- bracketing ---------------------------------------------------------------------- */

/* low: the largest rate that met the goal; high: the least above it that missed it. Below
 * it others may have missed it, too: a server can do worse at low loads, when it has to be
 * woken up. */
static void
find_bounds(struct search *s)
{
    s->low = s->high = 0;
    for (unsigned i = 0; i < s->tried_count; i++) {
        const struct search_point *p = &s->tried[i];
        s->low = leans_to_met(p) ? fmax(s->low, p->rate) : s->low;
    }
    for (unsigned i = 0; i < s->tried_count; i++) {
        const struct search_point *p = &s->tried[i];
        if (!leans_to_met(p) && p->rate > s->low) {
            s->high = s->high > 0 ? fmin(s->high, p->rate) : p->rate;
        }
    }
}

static void
bracket_next(struct search *s)
{
    find_bounds(s);
    if (s->low == 0) {
        double least = fmin(s->high / 2, s->ceiling * BRACKET_START);
        if (least < s->ceiling * BRACKET_END) {
            finish(s);
        } else {
            probe_at(s, SEARCH_BRACKET, least);
        }
        return;
    }
    double next = fmin(s->low * 2, fmax(s->ceiling, s->low));
    if (s->high > 0 && next >= s->high) {
        bisect_next(s);
    } else if (next <= s->low || !is_affordable(s, CONFIRM_RUNS + 1)) {
        confirm_start(s, s->low);
    } else {
        probe_at(s, SEARCH_BRACKET, next);
    }
}

static void
bracket_start(struct search *s)
{
    if (!(s->ceiling > 0)) {
        finish(s);
    } else if (s->limit == 0) {
        probe_at(s, SEARCH_BRACKET, s->ceiling * BRACKET_START);
    } else {
        bracket_next(s);
    }
}

/* Of the rates that were tried before the limit was known, too. False: requests stayed unanswered
 * even at the low load, and no multiple of that is a limit. */
static bool
learn_limit(struct search *s, double value)
{
    bool is_known = isfinite(value);
    s->limit = is_known ? s->conf.limit_times * value : 0;
    for (unsigned i = 0; i < s->tried_count; i++) {
        struct search_point *p = &s->tried[i];
        p->verdict = judge(s, &p->outcome, &p->bound);
        if (!is_known) {
            p->verdict = SEARCH_MISSED;
            p->bound = SEARCH_BY_LATENCY;
        }
    }
    return is_known;
}

static void
bracket_tell(struct search *s, const struct search_point *p)
{
    if (s->limit == 0 && !learn_limit(s, p->outcome.value)) {
        finish(s);
        return;
    }
    bracket_next(s);
}

/* ---- peak and ceiling ---------------------------------------------------------------- */

static void
peak_tell(struct search *s, const struct search_outcome *o)
{
    s->peak = o->qps;
    if (s->peak > 0) {
        probe_at(s, SEARCH_CEILING, capped(s, s->peak));
    } else {
        finish(s);
    }
}

/* low and high are of the rate alone here, whatever the latency. */
static void
ceiling_tell(struct search *s, const struct search_point *p)
{
    bool is_achieved = p->outcome.is_valid && p->outcome.achieved >= SEARCH_ACHIEVED_MIN;
    double rate = p->rate;
    if (is_achieved) {
        s->low = fmax(s->low, rate);
    } else {
        s->high = s->high == 0 ? rate : fmin(s->high, rate);
    }
    double next;
    if (s->high == 0) {
        next = capped(s, rate * CEILING_STEP);
    } else if (s->low == 0) {
        /* What was answered is near it, unless the server has broken down. */
        next = fmin(s->high * 0.95, fmax(p->outcome.qps * 0.98, s->high / 2));
    } else {
        next = (s->low + s->high) / 2;
    }
    bool is_found =
        s->low > 0 && s->high > 0 && s->high - s->low <= CEILING_WIDTH * s->high;
    if (is_found || next == rate || s->tried_count >= CEILING_PROBES ||
        !is_affordable(s, CONFIRM_RUNS + 1)) {
        s->ceiling = s->low > 0 ? s->low : next;
        s->low = s->high = 0;
        bracket_start(s);
    } else {
        probe_at(s, SEARCH_CEILING, next);
    }
}

/* ---- all ----------------------------------------------------------------------------- */

void
search_init(struct search *s, const struct search_conf *conf)
{
    must(conf->tolerance > 0 && (conf->limit > 0 || conf->limit_times > 0));
    *s = (struct search){.conf = *conf, .limit = conf->limit};
    probe_at(s, SEARCH_PEAK, 0);
}

struct search_probe
search_next(const struct search *s)
{
    return s->probe;
}

/* A run that the client spoiled is made again; one that does not decide, for longer. */
static bool
goes_on(struct search *s, const struct search_point *p)
{
    struct search_probe *probe = &s->probe;
    bool is_early = probe->stage == SEARCH_PEAK || probe->stage == SEARCH_CEILING;
    bool is_confirming = probe->stage == SEARCH_CONFIRM;
    unsigned reserve = is_confirming ? 0 : CONFIRM_RUNS;
    if (is_early) {
        return false;
    }
    if (p->bound == SEARCH_BY_CLIENT && s->retries < RETRIES_MAX &&
        is_affordable(s, probe->length + reserve)) {
        s->retries++;
        return true;
    }
    if (!is_confirming && p->verdict == SEARCH_OPEN &&
        probe->length * 2 <= SEARCH_LENGTH_MAX &&
        is_affordable(s, probe->length * 2 + reserve)) {
        probe->length *= 2;
        return true;
    }
    return false;
}

void
search_tell(struct search *s, const struct search_outcome *o)
{
    must(s->probe.stage != SEARCH_DONE);
    struct search_point p = {.rate = s->probe.rate, .outcome = *o};
    s->probes++;
    s->spent_s += o->seconds;
    s->longest_s = fmax(s->longest_s, o->seconds / s->probe.length);
    p.verdict = judge(s, o, &p.bound);
    if (goes_on(s, &p)) {
        return;
    }
    if (s->probe.stage != SEARCH_PEAK && s->probe.stage != SEARCH_CONFIRM) {
        must(s->tried_count < SEARCH_PROBES_MAX);
        s->tried[s->tried_count++] = p;
    }
    switch (s->probe.stage) {
    case SEARCH_PEAK:
        peak_tell(s, o);
        return;
    case SEARCH_CEILING:
        ceiling_tell(s, &p);
        return;
    case SEARCH_BRACKET:
        bracket_tell(s, &s->tried[s->tried_count - 1]);
        return;
    case SEARCH_BISECT:
        bisect_tell(s, &p);
        return;
    case SEARCH_CONFIRM:
        confirm_tell(s, o, p.bound);
        return;
    case SEARCH_DONE:
        break;
    }
    unreachable();
}

/* The largest rate inside the span that most of its runs met. */
static double
best_of(const struct search *s, const struct span *span)
{
    double best = span->low;
    for (unsigned i = 0; i < s->confirmed_count; i++) {
        const struct search_point *p = &s->confirmed[i];
        if (2 * p->met > p->runs && (span->high == 0 || p->rate < span->high)) {
            best = fmax(best, p->rate);
        }
    }
    for (unsigned i = 0; s->confirmed_count == 0 && i < s->tried_count; i++) {
        const struct search_point *p = &s->tried[i];
        if (leans_to_met(p) && (span->high == 0 || p->rate < span->high)) {
            best = fmax(best, p->rate);
        }
    }
    return best;
}

static enum search_doubt
doubt_of(const struct search *s, double low, double high)
{
    enum search_doubt doubt = SEARCH_CUT_SHORT;
    for (unsigned i = 0; i < s->confirmed_count; i++) {
        const struct search_point *p = &s->confirmed[i];
        bool is_inside = p->rate > low && (high == 0 || p->rate < high);
        if (is_inside && p->met > 0 && p->met < p->runs) {
            return SEARCH_DISAGREES;
        }
        if (is_inside && p->runs == SEARCH_REPEATS && p->verdict == SEARCH_OPEN) {
            doubt = SEARCH_UNSURE;
        }
    }
    return doubt;
}

/* That the answer can be: where no rate has missed the goal, what is achieved at all. */
static double
highest(const struct search *s, const struct span *span)
{
    double achieved = s->ceiling > 0 ? s->ceiling : s->peak;
    return span->high > 0 ? span->high : achieved;
}

struct search_answer
search_answer(const struct search *s)
{
    struct span span = span_of(s->confirmed, s->confirmed_count);
    struct span tried = span_of(s->tried, s->tried_count);
    bool is_capped =
        span.high == 0 && s->conf.rate_max > 0 && span.low >= s->conf.rate_max;
    struct search_answer a = {
        .is_confirmed = span.low > 0 && (span.high > 0 || is_capped),
        .limit = s->limit,
        .peak = s->peak,
        .ceiling = s->ceiling,
        .probes = s->probes,
        .seconds = s->spent_s,
    };
    if (span.low == 0 && (span.high == 0 || tried.low < span.high)) {
        span.low = tried.low;
    }
    if (span.high == 0 && tried.high > span.low) {
        span.high = tried.high;
        span.bound = tried.bound;
    }
    a.low = span.low;
    a.high = span.high;
    a.bound = span.bound;
    a.doubt = doubt_of(s, a.low, a.high);
    a.qps = best_of(s, &span);
    a.is_met = a.qps > 0;
    a.is_found = a.is_met && (is_capped || highest(s, &span) - span.low <= a.qps);
    a.is_decided = a.is_met && (span.high > 0 ? is_narrow(s, span.low, span.high)
                                              : is_capped && a.qps >= s->conf.rate_max);
    return a;
}

const char *const search_bound_names[SEARCH_BOUNDS] = {
    [SEARCH_BY_NOTHING] = "nothing",    [SEARCH_BY_LATENCY] = "latency",
    [SEARCH_BY_RATE] = "achieved rate", [SEARCH_BY_ERRORS] = "errors",
    [SEARCH_BY_CLIENT] = "client",
};
