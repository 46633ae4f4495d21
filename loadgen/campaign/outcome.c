/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/campaign/runner.h"

#include <math.h>

#include "loadgen/measure/series.h"

#define Z 1.959964 /* of 95 %, two-sided */

/* The latencies that count, and how many requests were never answered. */
struct view {
    const struct hist *finite, *waits;
    double censored, all;
    double share; /* of the requests that the series is of */
    const struct series *series;
};

/* What has the latencies that count: the class named or shown, beside an antagonist the one that
 * is varied, else all of the run. */
static const struct result *
told_of(const struct result *r, const struct options *o, const struct goal *g)
{
    int named = options_class_named(o, g->class_name);
    if (named >= 0 || r->has_shown) {
        return &r->classes[named >= 0 ? (unsigned)named : r->shown];
    }
    const struct result *told = r;
    for (unsigned i = 0; i < r->classes_len; i++) {
        told = r->classes[i].is_antagonist ? &r->classes[o->varied] : told;
    }
    return told;
}

/* Those without answer that are gets. */
static double
reads_censored(const struct result *r, const struct options *o, const struct result *told)
{
    double reads = 0;
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct result *c = r->classes_len > 1 ? &r->classes[i] : r;
        if (told == r || told == &r->classes[i]) {
            double share = mix_share_of_updates(&o->classes[i].workload.mix);
            reads += (double)(result_censored(&c->total) -
                              result_censored_updates(&c->total, share));
        }
    }
    return reads;
}

static struct view
view_of(const struct result *r, const struct options *o, const struct goal *g)
{
    const struct result *one = told_of(r, o, g);
    const struct hist *reads = one->total.latency[o->from][COUNTERS_READ];
    bool are_reads = g->scope == GOAL_READS && hist_count(reads) > 0;
    struct view v = {
        .finite = are_reads ? reads : one->all[o->from],
        .waits = one->total.waits,
        .censored =
            are_reads ? reads_censored(r, o, one) : (double)result_censored(&one->total),
        .series = one->series,
    };
    v.all = (double)hist_count(v.finite) + v.censored;
    v.share =
        result_ratio((double)hist_count(v.finite), (double)hist_count(one->all[o->from]));
    return v;
}

static double
value_at(const struct view *v, double share)
{
    if (share > 1) {
        return INFINITY;
    }
    struct quantile q =
        result_quantile(v->finite, v->waits, (uint64_t)v->censored, fmax(0, share));
    return q.is_bound ? INFINITY : (double)q.ns;
}

static void
measure_mean(const struct view *v, struct search_outcome *out)
{
    double sum = hist_mean(v->finite) * (double)hist_count(v->finite);
    out->value = (sum + hist_mean(v->waits) * v->censored) / v->all;
    double half = Z * hist_stddev(v->finite) / sqrt(v->all);
    out->low = out->value - half;
    out->high = v->censored > 0 ? INFINITY : out->value + half;
}

/* Where the run is too short to tell how requests depend on each other, as if they did
 * not. */
static void
measure_percentile(const struct view *v, double q, struct search_outcome *out)
{
    double half = Z * sqrt(v->all * q * (1 - q));
    out->value = value_at(v, q);
    if (v->series != NULL) {
        struct ci ci = series_ci(v->series, q);
        if (v->share < 1) { /* a part of them tells so much less */
            ci = ci_of_effective(v->all, ci.effective * v->share, q);
        }
        if (ci.is_known) {
            out->low = value_at(v, ci.low);
            out->high = ci.high < 1 ? value_at(v, ci.high) : INFINITY;
            return;
        }
    }
    out->low = value_at(v, floor(v->all * q - half) / v->all);
    out->high = value_at(v, (ceil(v->all * q + half) + 1) / v->all);
}

/* As the run tells it; where it cannot say whether the server fell behind, as if it had. */
static double
achieved(const struct result *r)
{
    uint64_t kept = result_achieved_of(&r->total, r->pace != PACE_KEPT);
    return !r->is_open ? 1
                       : result_ratio((double)kept, (double)ctr_get(&r->total.offered));
}

/* A share of all answers since the first connection, as errors are counted from there on: of
 * the class that the goal names, or of all but antagonists. */
static double
error_share(const struct result *r, const struct options *o, const struct goal *g)
{
    int named = options_class_named(o, g->class_name);
    double errors = 0, answered = 0;
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct result *c = &r->classes[i];
        if (named >= 0 ? i == (unsigned)named : !c->is_antagonist) {
            errors += (double)counters_error_sum(&c->total);
            answered += (double)ctr_get(&c->total.answered);
        }
    }
    return result_ratio(errors, errors + answered);
}

/* Each class is asked where the check applies: an antagonist may be as busy as it likes. */
static bool
client_kept_up(const struct result *r)
{
    bool has = r->checks[CHECK_COMPLETE].is_good;
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct check *c = &r->classes[i].checks[CHECK_CPU];
        has = has && (!c->applies || c->is_good);
    }
    return has;
}

struct search_outcome
outcome_of_run(const struct result *r, const struct options *o, const struct goal *g,
               double seconds)
{
    struct view v = view_of(r, o, g);
    const struct result *one = &r->classes[o->varied];
    uint64_t answered = one->is_open ? result_achieved(one) : counters_done(&one->total);
    struct search_outcome out = {
        .value = INFINITY,
        .low = INFINITY,
        .high = INFINITY,
        .qps = result_ratio((double)answered, one->elapsed_s),
        .achieved = achieved(one),
        .is_unsure = one->pace == PACE_UNSURE,
        .errors = error_share(r, o, g),
        .is_valid = client_kept_up(r),
        .seconds = seconds,
    };
    if (v.all > 0 && g->is_mean) {
        measure_mean(&v, &out);
    } else if (v.all > 0) {
        measure_percentile(&v, g->q, &out);
    }
    return out;
}
