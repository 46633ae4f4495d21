/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/campaign/outcome.h"

#include <math.h>
#include <string.h>

#include "loadgen/measure/series.h"

#define Z 1.959964 /* of 95 %, two-sided */

static int
class_named(const struct options *o, const char *name)
{
    for (unsigned i = 0; i < o->classes_len; i++) {
        if (strcmp(o->classes[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const char *
outcome_find_class(const struct options *o, const struct goal *g, unsigned *which)
{
    int named = -1;
    unsigned free = 0, loads = 0;
    *which = 0;
    if (g->class_name[0] != '\0') {
        named = class_named(o, g->class_name);
        if (named < 0) {
            return "there is no class of the name that the goal has";
        }
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        loads += o->classes[i].is_measuring ? 0 : 1;
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        if (!c->is_measuring && ((c->qps == 0 && c->qps_share == 0) || loads == 1)) {
            free++;
            *which = i;
        }
    }
    if (free == 1) {
        return NULL;
    }
    *which = named >= 0 ? (unsigned)named : 0;
    return named >= 0 ? NULL
                      : "which class's rate is to be varied? The one without --qps, or "
                        "the goal's class=NAME";
}

/* The latencies that count, and how many requests were never answered. */
struct view {
    const struct hist *finite, *waits;
    double censored, all;
    const struct series *series;
};

static struct view
view_of(const struct result *r, const struct options *o, const struct goal *g)
{
    int named = g->class_name[0] != '\0' ? class_named(o, g->class_name)
                : r->has_shown           ? (int)r->shown
                                         : -1;
    const struct result *one = named >= 0 ? &r->classes[named] : r;
    const struct hist *reads = one->total.latency[o->from][COUNTERS_READ];
    bool are_reads = g->scope == GOAL_READS && hist_count(reads) > 0;
    struct view v = {
        .finite = are_reads ? reads : one->all[o->from],
        .waits = one->total.waits,
        .censored = (double)result_censored(&one->total),
        .series = one->series,
    };
    v.all = (double)hist_count(v.finite) + v.censored;
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
        if (ci.is_known) {
            out->low = value_at(v, ci.low);
            out->high = ci.high < 1 ? value_at(v, ci.high) : INFINITY;
            return;
        }
    }
    out->low = value_at(v, floor(v->all * q - half) / v->all);
    out->high = value_at(v, (ceil(v->all * q + half) + 1) / v->all);
}

/* Of the requests of the window those count that were answered in it: what a server answers
 * later, when nothing more is sent, says nothing about the rate. Those still on their way on
 * the connections are not late. */
static double
achieved(const struct result *r, const struct lclass *c, unsigned servers)
{
    const struct counters *t = &r->total;
    double offered = (double)ctr_get(&t->offered);
    double done = (double)ctr_get(&t->done[COUNTERS_READ]) +
                  (double)ctr_get(&t->done[COUNTERS_UPDATE]);
    double on_the_way = (double)(c->threads * c->connections * c->depth) * servers;
    double good = (double)ctr_get(&t->good);
    return !r->is_open ? 1 : result_ratio(fmin(good, done + on_the_way), offered);
}

struct search_outcome
outcome_of_run(const struct result *r, const struct options *o, const struct goal *g,
               unsigned varied, double seconds)
{
    struct view v = view_of(r, o, g);
    const struct result *one = &r->classes[varied];
    const struct counters *t = &one->total;
    double done = (double)ctr_get(&t->done[COUNTERS_READ]) +
                  (double)ctr_get(&t->done[COUNTERS_UPDATE]);
    double errors = (double)counters_error_sum(&r->total);
    struct search_outcome out = {
        .value = INFINITY,
        .low = INFINITY,
        .high = INFINITY,
        .qps = result_ratio(done, one->elapsed_s),
        .achieved = achieved(one, &o->classes[varied], o->servers_len),
        .errors = result_ratio(errors, errors + (double)ctr_get(&r->total.good)),
        .is_valid = r->checks[CHECK_CPU].is_good && r->checks[CHECK_COMPLETE].is_good,
        .seconds = seconds,
    };
    if (v.all > 0 && g->is_mean) {
        measure_mean(&v, &out);
    } else if (v.all > 0) {
        measure_percentile(&v, g->q, &out);
    }
    return out;
}
