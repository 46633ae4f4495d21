/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/collect.h"

#include "loadgen/measure/gaps.h"
#include "loadgen/measure/result.h"
#include "loadgen/work/schedule.h"

static bool
is_local(const struct run *r)
{
    bool found = false;
    for (unsigned i = 0; i < r->o->servers_len; i++) {
        found = found || r->conf.targets[i].is_local;
    }
    return found;
}

/* Fills in what class number `index` came to. False when memory is short. */
static bool
collect_class(struct run *r, const struct run_spec *spec, unsigned index,
              enum run_end how, struct result *result)
{
    const struct run_class *c = &r->classes[index];
    if (!result_init(result, c->threads)) {
        return false;
    }
    result->evenness = evenness_create(r->o->servers_len);
    bool is_good = result->evenness != NULL;
    run_sum(r, index, &result->total);
    double longest = 0;
    bool is_short = true; /* all of its threads have ended early */
    for (unsigned i = 0; i < c->threads; i++) {
        const struct lthread *t = &r->threads[c->first + i];
        ctr_add(&result->total.loaded, ctr_get(&t->loaded));
        result->costs[i] = t->cost;
        longest = fmax(longest, t->cost.elapsed_s);
        is_short = is_short && t->is_short;
        is_good = is_good && evenness_add(result->evenness, &t->evenness);
    }
    result->name = c->conf->name;
    result->is_open = traffic_is_open(&c->traffic);
    result->mode = traffic_mode_name(c->traffic.mode);
    result->qps = result->is_open ? c->traffic.rate : 0;
    result->hits_expected = run_hits_expected(c->conf);
    result->is_uneven =
        schedule_varies(&c->conf->traffic.schedule) || c->traffic.is_timed;
    result->was_interrupted = how == RUN_SIGNAL;
    result->is_replay = c->feed.reader != NULL;
    bool is_whole = (how == RUN_DONE || how == RUN_OVER) && !is_short;
    result->elapsed_s = is_whole ? run_spec_time(r, spec) : longest;
    if (c->traffic.is_timed) {
        result->qps =
            result_ratio((double)ctr_get(&result->total.offered), result->elapsed_s);
    }
    result->is_local = is_local(r);
    result->limits = &r->o->limits;
    result->gap_each = c->traffic.mode == TRAFFIC_OPEN && c->feed.reader == NULL
                           ? gaps_each(c->traffic.rate / c->threads)
                           : 0;
    result->has_steal = r->steal.is_known;
    result->steal = r->steal.share;
    result->series = sampler_take(&r->sampler, index);
    result->from = r->o->from_issue ? FROM_ISSUE : FROM_INTENDED;
    result->slo = c->conf->slo;
    result->is_antagonist = c->conf->antagonist != NULL;
    return is_good;
}

void
collect_phases(const struct run *r, nsec_t end, struct result *result)
{
    struct phase_times times = {
        .opened = r->opened_at,
        .ready = r->ready_at,
        .is_first = r->count == 1,
        .begin = r->window.begin,
        .start = r->window.start,
        .end = end,
        .drained = r->drained_at,
    };
    result_phases(&times, result->phases);
}

enum exit_status
collect_result(struct run *r, const struct run_spec *spec, enum run_end how,
               struct result *result)
{
    if (!result_init_classes(result, r->threads_len, r->o->classes_len)) {
        return run_fail(r, "out of memory");
    }
    result->evenness = evenness_create(r->o->servers_len);
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct result *c = &result->classes[i];
        if (result->evenness == NULL || !collect_class(r, spec, i, how, c) ||
            !result_add_class(result, c, r->classes[i].first)) {
            result_fini(result);
            return run_fail(r, "out of memory");
        }
        if (r->classes[i].conf->is_measuring) {
            result->shown = i;
            result->has_shown = true;
        }
    }
    result->series = sampler_take(&r->sampler, r->o->classes_len);
    result->server_stats = stats_poll_take(&r->poll);
    result->server_settings = stats_poll_settings(&r->poll);
    if (spec->stops_early && until_is_given(&r->o->until)) {
        result->until = &r->o->until;
        result->is_until_met = stopping_is_met(result);
    }
    if (r->o->save != NULL && !lthread_samples(r->threads, r->threads_len, result)) {
        result_fini(result);
        return run_fail(r, "out of memory");
    }
    result->from = r->o->from_issue ? FROM_ISSUE : FROM_INTENDED;
    result->mode = r->o->classes_len == 1 ? result->classes[0].mode : NULL;
    result->gap_each = r->o->classes_len == 1 ? result->classes[0].gap_each : 0;
    result->limits = &r->o->limits;
    result->has_steal = r->steal.is_known;
    result->steal = r->steal.share;
    result_judge(result);
    return EXIT_VALID;
}
