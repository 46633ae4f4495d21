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
collect_class(struct run *r, const struct run_shot *shot, unsigned index,
              enum watch_end how, struct result *result)
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
    result->was_interrupted = how == WATCH_SIGNAL;
    result->is_replay = c->tape.reader != NULL;
    bool is_whole = (how == WATCH_DONE || how == WATCH_OVER) && !is_short;
    result->elapsed_s = is_whole ? run_time_of(r, shot) : longest;
    if (c->traffic.is_timed) {
        result->qps =
            result_ratio((double)ctr_get(&result->total.offered), result->elapsed_s);
    }
    result->is_local = is_local(r);
    result->limits = &r->o->limits;
    result->gap_each = c->traffic.mode == TRAFFIC_OPEN && c->tape.reader == NULL
                           ? gaps_each(c->traffic.rate / c->threads)
                           : 0;
    result->has_steal = r->steal.is_known;
    result->steal = r->steal.share;
    result->series = observe_take(&r->observe, index);
    result->from = r->o->from_issue ? FROM_ISSUE : FROM_INTENDED;
    result->slo = c->conf->slo;
    result->is_antagonist = c->conf->antagonist != NULL;
    return is_good;
}

void
gather_phases(const struct run *r, nsec_t end, struct result *result)
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
gather(struct run *r, const struct run_shot *shot, enum watch_end how,
       struct result *result)
{
    if (!result_init_classes(result, r->threads_len, r->o->classes_len)) {
        return run_fail(r, "out of memory");
    }
    result->evenness = evenness_create(r->o->servers_len);
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        struct result *c = &result->classes[i];
        if (result->evenness == NULL || !collect_class(r, shot, i, how, c) ||
            !result_add_class(result, c, r->classes[i].first)) {
            result_fini(result);
            return run_fail(r, "out of memory");
        }
        if (r->classes[i].conf->is_measuring) {
            result->shown = i;
            result->has_shown = true;
        }
    }
    result->series = observe_take(&r->observe, r->o->classes_len);
    result->server_stats = inquiry_take(&r->inquiry);
    result->server_settings = inquiry_settings(&r->inquiry);
    if (shot->until_sure && until_is_given(&r->o->until)) {
        result->until = &r->o->until;
        result->is_until_met = sure_of_result(result);
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
