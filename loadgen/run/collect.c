/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run_state.h"

#include <math.h>

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

/* Other verbs that read ask for no key that is missing on purpose. */
static bool
reads_only_by_gets(const struct mix *mix)
{
    return mix_share(mix, MIX_CAS) == 0 && mix_share(mix, MIX_RMW) == 0 &&
           mix_share(mix, MIX_SCAN) == 0;
}

/* The share of a class's keys that should be found, when it can be told: 1 where all records are
 * there throughout and nothing else is asked for, so that a miss is the server's doing. Below
 * 0: unknown. */
static double
hits_expected(const struct lclass *c)
{
    const struct workload_conf *w = &c->workload;
    bool is_known = !c->no_load && !w->is_replay && w->one_hit == 0 && w->churn == 0 &&
                    dist_size_max(&w->expiry, 0, UINT64_MAX) == 0 &&
                    mix_share(&w->mix, MIX_DELETE) == 0 &&
                    /* the latest are asked for while their sets are on the way */
                    mix_share(&w->mix, MIX_INSERT) == 0 &&
                    (w->miss_ratio == 0 || reads_only_by_gets(&w->mix));
    return is_known ? 1 - w->miss_ratio : -1;
}

void
run_describe_class(struct result *result, const struct options *o, const struct lclass *c)
{
    result->name = c->name;
    result->slo = c->slo;
    result->from = o->from;
    result->limits = &o->limits;
    result->hits_expected = hits_expected(c);
    result->is_uneven = schedule_varies(&c->traffic.schedule) || c->traffic.is_timed;
    result->is_replay = c->trace.file.path != NULL;
    result->is_antagonist = c->antagonist != NULL;
}

void
run_describe_sum(struct result *result, const struct options *o)
{
    result->from = o->from;
    result->limits = &o->limits;
    result->mode = o->classes_len == 1 ? result->classes[0].mode : NULL;
    result->gap_each = o->classes_len == 1 ? result->classes[0].gap_each : 0;
    for (unsigned i = 0; i < o->classes_len; i++) {
        result->has_shown = result->has_shown || o->classes[i].is_measuring;
        result->shown = o->classes[i].is_measuring ? i : result->shown;
    }
}

nsec_t
run_ended_at(const struct run *r, unsigned first, unsigned count)
{
    nsec_t end = r->window.start;
    for (unsigned i = first; i < first + count; i++) {
        nsec_t of_thread = r->threads[i].ended_at;
        end = of_thread > end ? of_thread : end;
    }
    return end;
}

/* Fills in what class number `index` came to. */
static void
collect_class(struct run *r, unsigned index, enum run_end how, struct result *result)
{
    const struct run_class *c = &r->classes[index];
    result_init(result, c->threads, 0);
    result->evenness = evenness_create(r->o->servers_len);
    run_sum(r, index, &result->total);
    for (unsigned i = 0; i < c->threads; i++) {
        const struct lthread *t = &r->threads[c->first + i];
        ctr_add(&result->total.loaded, ctr_get(&t->loaded));
        result->costs[i] = t->cost;
        evenness_add(result->evenness, &t->evenness);
    }
    run_describe_class(result, r->o, c->conf);
    result->is_open = traffic_is_open(&c->traffic);
    result->mode = traffic_mode_names[c->traffic.mode];
    result->qps = result->is_open ? c->traffic.rate : 0;
    result->was_interrupted = how == RUN_SIGNAL;
    result->elapsed_s =
        (double)(run_ended_at(r, c->first, c->threads) - r->window.start) / 1e9;
    if (c->traffic.is_timed) {
        result->qps =
            result_ratio((double)ctr_get(&result->total.offered), result->elapsed_s);
    }
    result->is_local = is_local(r);
    result->gap_each = c->traffic.mode == TRAFFIC_OPEN && c->feed.reader == NULL
                           ? gaps_each(c->traffic.rate / c->threads)
                           : 0;
    result->has_steal = r->steal.is_known;
    result->steal = r->steal.share;
    result->series = sampler_take(&r->sampler, index);
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
    result->began_s = clock_wall_of(times.opened);
    result_phases(&times, result->phases);
}

void
collect_result(struct run *r, const struct run_spec *spec, enum run_end how,
               struct result *result)
{
    result_init(result, r->threads_len, r->o->classes_len);
    result->evenness = evenness_create(r->o->servers_len);
    for (unsigned i = 0; i < r->o->classes_len; i++) {
        collect_class(r, i, how, &result->classes[i]);
        result_add_class(result, &result->classes[i], r->classes[i].first);
    }
    result->series = sampler_take(&r->sampler, r->o->classes_len);
    result->server_stats = stats_poll_take(&r->poll);
    result->server_settings = stats_poll_settings(&r->poll);
    if (spec->stops_early && until_is_given(&r->o->until)) {
        result->until = &r->o->until;
        /* The last replies, among them the slowest, may widen again what it was ended for. */
        result->is_until_met = r->stopping.is_reached || stopping_is_met(result);
    }
    if (r->o->save != NULL) {
        lthread_samples(r->threads, r->threads_len, result);
    }
    run_describe_sum(result, r->o);
    result_judge(result);
}
