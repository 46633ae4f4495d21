/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/combine.h"

#include <math.h>

#include "base/alloc.h"

/* Each lists the costs of all its threads, class after class. */
static unsigned
first_thread(const struct options *o, const struct member *k, unsigned class)
{
    unsigned first = 0;
    for (unsigned i = k->first_class; i < class; i++) {
        first += (unsigned)o->classes[i].threads;
    }
    return first;
}

/* Of a class, as far as the member has told what they cost. */
static unsigned
threads_at(const struct combine_parts *p, const struct member *k, unsigned class)
{
    unsigned here = (unsigned)p->options->classes[class].threads;
    bool has_reported =
        member_sends(k, class) && k->threads >= first_thread(p->options, k, class) + here;
    return has_reported ? here : 0;
}

static unsigned
threads_of(const struct combine_parts *p, unsigned class)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < p->members->count; i++) {
        sum += threads_at(p, &p->members->all[i], class);
    }
    return sum;
}

/* 0: the numbers are those of the whole run. */
static double
headline_s(const struct combine_parts *p)
{
    const struct members *k = p->members;
    return (double)(ledger_cut(k->run.ledger) * k->run.length) / 1e9;
}

/* An agent that was lost counts with what it had reported. Returns how many threads it had. */
static unsigned
add_member(struct result *c, const struct combine_parts *p, unsigned index,
           unsigned class, unsigned first)
{
    const struct member *k = &p->members->all[index];
    unsigned here = threads_at(p, k, class);
    counters_merge(&c->total, ledger_headline(p->members->run.ledger, index, class));
    c->qps += (double)k->rates[class - k->first_class];
    c->elapsed_s = fmax(c->elapsed_s, k->elapsed_s);
    c->is_local = c->is_local || k->is_local;
    c->has_steal = c->has_steal || k->has_steal;
    c->steal = fmax(c->steal, k->steal);
    if (here > 0) {
        memcpy(&c->costs[first], &k->costs[first_thread(p->options, k, class)],
               here * sizeof *c->costs);
    }
    return here;
}

/* Of a rate that varies, as a process by itself tells it: the mean of the window, as a share of what 100 % is. */
static double
mean_share(const struct lclass *conf, double qps, double elapsed_s)
{
    struct schedule settled;
    const struct schedule_run run = {.rate = qps, .time_s = elapsed_s};
    if (qps <= 0 || elapsed_s <= 0 || !schedule_varies(&conf->traffic.schedule) ||
        schedule_settle(&settled, &conf->traffic.schedule, &run) != NULL) {
        return 1;
    }
    double mean = settled.mean;
    schedule_fini(&settled);
    return mean / qps;
}

/* How many requests made a gap, where that was the same in each process; else 0. */
static unsigned
gap_each(const struct combine_parts *p, unsigned class, double share)
{
    unsigned each = 0;
    for (unsigned i = 0; i < p->members->count; i++) {
        const struct member *k = &p->members->all[i];
        unsigned threads = member_sends(k, class) ? threads_at(p, k, class) : 0;
        if (threads > 0) {
            double rate = (double)k->rates[class - k->first_class] * share;
            unsigned its = gaps_each(rate / threads);
            if (each != 0 && its != each) {
                return 0;
            }
            each = its;
        }
    }
    return each;
}

static void
make_class(struct result *c, const struct combine_parts *p, unsigned class)
{
    unsigned threads = threads_of(p, class), first = 0;
    const struct lclass *conf = &p->options->classes[class];
    result_init(c, threads, 0);
    for (unsigned i = 0; i < p->members->count; i++) {
        if (member_sends(&p->members->all[i], class)) {
            first += add_member(c, p, i, class, first);
        }
    }
    must(first == threads);
    if (headline_s(p) > 0) {
        c->elapsed_s = headline_s(p);
    }
    c->series = ledger_take_series(p->members->run.ledger, class);
    run_describe_class(c, p->options, conf);
    bool is_timed = conf->traffic.is_timed; /* what it offers is the trace's to say */
    if (is_timed) {
        c->qps = result_ratio((double)ctr_get(&c->total.offered), c->elapsed_s);
    }
    c->is_open = c->qps > 0 || is_timed;
    double share = is_timed ? 1 : mean_share(conf, c->qps, c->elapsed_s);
    c->qps *= share;
    c->gap_each = conf->traffic.mode == TRAFFIC_PARTLY || !c->is_open || c->is_replay
                      ? 0
                      : gap_each(p, class, share);
    c->mode = traffic_mode_names[is_timed     ? TRAFFIC_OPEN
                                : c->is_open ? conf->traffic.mode
                                             : TRAFFIC_CLOSED];
    c->was_interrupted = p->was_interrupted;
}

/* ---- what became of each process ---------------------------------------------------- */

/* What a member reported, one each of its classes. */
static unsigned
counters_of(const struct combine_parts *p, unsigned index,
            struct counters *counters[OPTIONS_CLASSES_MAX])
{
    const struct member *k = &p->members->all[index];
    for (unsigned i = 0; i < k->classes; i++) {
        counters[i] = ledger_sum(p->members->run.ledger, index, k->first_class + i);
    }
    return k->classes;
}

static void
describe_load(struct result_agent *a, const struct combine_parts *p, unsigned index)
{
    struct counters *counters[OPTIONS_CLASSES_MAX];
    struct hist *all = counters_hist(COUNTERS_SUB_BITS);
    struct hist *lag = counters_hist(COUNTERS_SUB_BITS);
    struct hist *waits = counters_hist(COUNTERS_SUB_BITS);
    unsigned count = counters_of(p, index, counters);
    uint64_t kept = 0, censored = 0;
    for (unsigned i = 0; i < count; i++) {
        struct counters *t = counters[i];
        a->qps += (double)p->members->all[index].rates[i];
        a->offered += ctr_get(&t->offered);
        a->achieved += ctr_get(&t->good);
        kept += ctr_get(&t->within[WITHIN_1MS]);
        censored += result_censored(t);
        hist_merge(lag, t->lag);
        hist_merge(waits, t->waits);
        for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
            hist_merge(all, t->latency[FROM_INTENDED][verb]);
        }
    }
    a->adherence = result_ratio((double)kept, (double)a->offered);
    a->requests = hist_count(all) + censored;
    a->p50 = result_quantile(all, waits, censored, .5);
    a->p99 = result_quantile(all, waits, censored, .99);
    a->lag_p99 = hist_quantile(lag, .99);
    hist_destroy(&all);
    hist_destroy(&lag);
    hist_destroy(&waits);
}

static void
describe(struct result_agent *a, const struct combine_parts *p, unsigned index)
{
    struct align_estimate e = {0};
    const struct member *k = &p->members->all[index];
    const struct swarm_run *run = &p->members->run;
    snprintf(a->name, sizeof a->name, "%s", k->at.name);
    a->role = message_role_names[k->role];
    describe_load(a, p, index);
    a->capacity = capacity_of(p->capacity, index);
    for (unsigned i = 0; i < k->threads; i++) {
        a->busy = fmax(a->busy, result_busy(&k->costs[i]));
    }
    a->elapsed_s = k->elapsed_s;
    a->start_error = k->start_error;
    if (index == 0) {
        return;
    }
    a->intervals = ledger_reported(run->ledger, index);
    if (!(k->elapsed_s > 0) || k->is_out) {
        a->elapsed_s = (double)(a->intervals * run->length) / 1e9;
    }
    a->samples = k->samples;
    a->observed = k->servers;
    a->clock_bound = align_estimate(&k->align, &e) ? e.bound : 0;
    a->behind = k->behind_max;
    a->is_lost = k->state == MEMBER_LOST;
    snprintf(a->why, sizeof a->why, "%s", k->why);
}

/* Who had no part in the run is not told of, unless it should have had one. */
static bool
is_reported(const struct combine_parts *p, unsigned index)
{
    const struct member *k = &p->members->all[index];
    return index == 0 ? k->classes > 0 : !k->is_out || !k->is_told;
}

static void
make_agents(struct result *r, const struct combine_parts *p)
{
    r->agents = alloc_zeroed(p->members->count, sizeof *r->agents);
    for (unsigned i = 0; i < p->members->count; i++) {
        if (is_reported(p, i)) {
            describe(&r->agents[r->agents_len++], p, i);
        }
    }
}

/* Slower than that, from the intended start, or never answered, among what these have counted. */
static uint64_t
count_above(struct counters *const *counters, unsigned count, uint64_t limit)
{
    uint64_t above = 0;
    for (unsigned i = 0; i < count; i++) {
        above += result_censored(counters[i]);
        for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
            above += hist_above(counters[i]->latency[FROM_INTENDED][verb], limit);
        }
    }
    return above;
}

/* One process that makes most of the tail is seen here, and not in the sum. */
static void
share_tail(struct result *r, const struct combine_parts *p)
{
    struct counters *counters[OPTIONS_CLASSES_MAX];
    uint64_t limit = result_at(r, FROM_INTENDED, .99).ns, above = 0, all = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < p->members->count; i++) {
        if (!is_reported(p, i)) {
            continue;
        }
        unsigned classes = counters_of(p, i, counters);
        r->agents[at].tail_share = (double)count_above(counters, classes, limit);
        above += (uint64_t)r->agents[at].tail_share;
        all += r->agents[at].requests;
        at++;
    }
    for (unsigned i = 0; i < at; i++) {
        r->agents[i].tail_share = result_ratio(r->agents[i].tail_share, (double)above);
        r->agents[i].share = result_ratio((double)r->agents[i].requests, (double)all);
    }
}

/* What those that were left were still offered, and what they achieved of it. */
static void
make_loss(struct result *r, const struct combine_parts *p, double elapsed_s)
{
    const struct ledger *ledger = p->members->run.ledger;
    for (unsigned i = 0; i < r->agents_len; i++) {
        r->loss.has_happened = r->loss.has_happened || r->agents[i].is_lost;
    }
    r->loss.is_accepted = p->accepts_loss;
    for (unsigned i = 0; i < p->members->count; i++) {
        const struct member *k = &p->members->all[i];
        r->loss.is_accepted = r->loss.is_accepted && (k->is_out || !k->is_wrong);
    }
    r->loss.headline_s = headline_s(p);
    if (!r->loss.has_happened || r->loss.headline_s == 0) {
        return;
    }
    r->loss.after_s = fmax(0, elapsed_s - r->loss.headline_s);
    for (unsigned i = 0; i < p->members->count; i++) {
        for (unsigned c = 0; c < r->classes_len; c++) {
            struct counters *all = ledger_sum(ledger, i, c);
            const struct counters *before = ledger_headline(ledger, i, c);
            r->loss.after_offered += ctr_get(&all->offered) - ctr_get(&before->offered);
            r->loss.after_achieved += ctr_get(&all->good) - ctr_get(&before->good);
        }
    }
}

void
combine_results(struct result *r, const struct combine_parts *p)
{
    unsigned count = p->options->classes_len, threads = 0, first = 0;
    for (unsigned i = 0; i < count; i++) {
        threads += threads_of(p, i);
    }
    result_init(r, threads, count);
    for (unsigned i = 0; i < count; i++) {
        make_class(&r->classes[i], p, i);
        result_add_class(r, &r->classes[i], first);
        r->has_steal = r->has_steal || r->classes[i].has_steal;
        r->steal = fmax(r->steal, r->classes[i].steal);
        first += r->classes[i].threads;
    }
    run_describe_sum(r, p->options);
    make_agents(r, p);
    make_loss(r, p, members_longest(p->members));
    r->series = ledger_take_series(p->members->run.ledger, count);
    result_judge(r);
    share_tail(r, p);
}
