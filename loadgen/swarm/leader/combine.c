/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/members.h"

#include <math.h>

#include "base/alloc.h"
#include "loadgen/run/run.h"

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
threads_at(const struct options *o, const struct member *k, unsigned class)
{
    unsigned here = (unsigned)o->classes[class].threads;
    bool has_reported =
        member_sends(k, class) && k->threads >= first_thread(o, k, class) + here;
    return has_reported ? here : 0;
}

static unsigned
threads_of(const struct members *m, unsigned class)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < m->count; i++) {
        sum += threads_at(m->options, &m->all[i], class);
    }
    return sum;
}

/* 0: the numbers are those of the whole run. */
static double
headline_s(const struct members *m)
{
    return (double)(ledger_cut(m->run.ledger) * m->run.length) / 1e9;
}

/* An agent that was lost counts with what it had reported. Returns how many threads it had. */
static unsigned
add_member(struct result *c, const struct options *o, const struct member *k,
           unsigned class, unsigned first)
{
    unsigned here = threads_at(o, k, class);
    counters_merge(&c->total, ledger_headline(k->run->ledger, k->part, class));
    c->qps += (double)k->rates[class - k->first_class];
    c->elapsed_s = fmax(c->elapsed_s, k->elapsed_s);
    c->is_local = c->is_local || k->is_local;
    c->has_steal = c->has_steal || k->has_steal;
    c->steal = fmax(c->steal, k->steal);
    if (here > 0) {
        memcpy(&c->costs[first], &k->costs[first_thread(o, k, class)],
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
gap_each(const struct members *m, unsigned class, double share)
{
    unsigned each = 0;
    for (unsigned i = 0; i < m->count; i++) {
        const struct member *k = &m->all[i];
        unsigned threads = member_sends(k, class) ? threads_at(m->options, k, class) : 0;
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
make_class(struct result *c, const struct members *m, unsigned class)
{
    unsigned threads = threads_of(m, class), first = 0;
    const struct lclass *conf = &m->options->classes[class];
    result_init(c, threads, 0);
    for (unsigned i = 0; i < m->count; i++) {
        if (member_sends(&m->all[i], class)) {
            first += add_member(c, m->options, &m->all[i], class, first);
        }
    }
    must(first == threads);
    if (headline_s(m) > 0) {
        c->elapsed_s = headline_s(m);
    }
    c->series = ledger_take_series(m->run.ledger, class);
    run_describe_class(c, m->options, conf);
    bool is_timed = conf->traffic.is_timed; /* what it offers is the trace's to say */
    if (is_timed) {
        c->qps = result_ratio((double)ctr_get(&c->total.offered), c->elapsed_s);
    }
    c->is_open = c->qps > 0 || is_timed;
    double share = is_timed ? 1 : mean_share(conf, c->qps, c->elapsed_s);
    c->qps *= share;
    c->gap_each = conf->traffic.mode == TRAFFIC_PARTLY || !c->is_open || c->is_replay
                      ? 0
                      : gap_each(m, class, share);
    c->mode = traffic_mode_names[is_timed     ? TRAFFIC_OPEN
                                 : c->is_open ? conf->traffic.mode
                                              : TRAFFIC_CLOSED];
}

/* ---- what became of each process ---------------------------------------------------- */

/* What a member reported, one each of its classes. */
static unsigned
counters_of(const struct member *k, struct counters *counters[OPTIONS_CLASSES_MAX])
{
    for (unsigned i = 0; i < k->classes; i++) {
        counters[i] = ledger_sum(k->run->ledger, k->part, k->first_class + i);
    }
    return k->classes;
}

static void
describe_load(struct result_agent *a, const struct member *k)
{
    struct counters *counters[OPTIONS_CLASSES_MAX];
    struct hist *all = counters_hist(COUNTERS_SUB_BITS);
    struct hist *lag = counters_hist(COUNTERS_SUB_BITS);
    struct hist *waits = counters_hist(COUNTERS_SUB_BITS);
    unsigned count = counters_of(k, counters);
    uint64_t kept = 0, censored = 0;
    for (unsigned i = 0; i < count; i++) {
        struct counters *t = counters[i];
        a->qps += (double)k->rates[i];
        a->offered += ctr_get(&t->offered);
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
describe(struct result_agent *a, const struct members *m, const struct member *k)
{
    struct align_estimate e = {0};
    snprintf(a->name, sizeof a->name, "%s", k->at.name);
    a->role = message_role_names[k->role];
    describe_load(a, k);
    for (unsigned i = 0; i < m->options->classes_len; i++) {
        a->capacity += k->capacities[i];
    }
    for (unsigned i = 0; i < k->threads; i++) {
        a->busy = fmax(a->busy, result_busy(&k->costs[i]));
    }
    a->elapsed_s = k->elapsed_s;
    a->start_error = k->start_error;
    if (k->part == 0) {
        return;
    }
    a->intervals = ledger_reported(k->run->ledger, k->part);
    if (!(k->elapsed_s > 0) || k->is_out) {
        a->elapsed_s = (double)(a->intervals * k->run->length) / 1e9;
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
is_reported(const struct member *k)
{
    return k->part == 0 ? k->classes > 0 : !k->is_out || !k->is_told;
}

static void
make_agents(struct result *r, const struct members *m)
{
    r->agents = alloc_zeroed(m->count, sizeof *r->agents);
    for (unsigned i = 0; i < m->count; i++) {
        if (is_reported(&m->all[i])) {
            describe(&r->agents[r->agents_len++], m, &m->all[i]);
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

/* Of its part in each class, at the pace of that. */
static uint64_t
achieved_of(const struct result *r, const struct member *k)
{
    struct counters *counters[OPTIONS_CLASSES_MAX];
    unsigned count = counters_of(k, counters);
    uint64_t achieved = 0;
    for (unsigned i = 0; i < count; i++) {
        bool is_behind = r->classes[k->first_class + i].pace == PACE_BEHIND;
        achieved += result_achieved_of(counters[i], is_behind);
    }
    return achieved;
}

/* One process that makes most of the tail is seen here, and not in the sum. */
static void
share_tail(struct result *r, const struct members *m)
{
    struct counters *counters[OPTIONS_CLASSES_MAX];
    uint64_t limit = result_at(r, FROM_INTENDED, .99).ns, above = 0, all = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < m->count; i++) {
        if (!is_reported(&m->all[i])) {
            continue;
        }
        unsigned classes = counters_of(&m->all[i], counters);
        r->agents[at].achieved = achieved_of(r, &m->all[i]);
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
make_loss(struct result *r, const struct members *m, double elapsed_s)
{
    const struct ledger *ledger = m->run.ledger;
    for (unsigned i = 0; i < r->agents_len; i++) {
        r->loss.has_happened = r->loss.has_happened || r->agents[i].is_lost;
    }
    for (unsigned i = 0; i < m->count; i++) {
        const struct member *k = &m->all[i];
        r->loss.is_accepted = r->loss.is_accepted && (k->is_out || !k->is_wrong);
    }
    r->loss.headline_s = headline_s(m);
    if (!r->loss.has_happened || r->loss.headline_s == 0) {
        return;
    }
    r->loss.after_s = fmax(0, elapsed_s - r->loss.headline_s);
    for (unsigned i = 0; i < m->count; i++) {
        for (unsigned c = 0; c < r->classes_len; c++) {
            struct counters *all = ledger_sum(ledger, i, c);
            const struct counters *before = ledger_headline(ledger, i, c);
            r->loss.after_offered += ctr_get(&all->offered) - ctr_get(&before->offered);
            r->loss.after_achieved += counters_done(all) - counters_done(before);
        }
    }
}

void
combine_results(struct result *r, const struct members *m, bool was_interrupted,
                bool accepts_loss)
{
    unsigned count = m->options->classes_len, threads = 0, first = 0;
    for (unsigned i = 0; i < count; i++) {
        threads += threads_of(m, i);
    }
    result_init(r, threads, count);
    for (unsigned i = 0; i < count; i++) {
        make_class(&r->classes[i], m, i);
        r->classes[i].was_interrupted = was_interrupted;
        result_add_class(r, &r->classes[i], first);
        first += r->classes[i].threads;
    }
    run_describe_sum(r, m->options);
    make_agents(r, m);
    r->loss.is_accepted = accepts_loss;
    make_loss(r, m, members_longest(m));
    r->series = ledger_take_series(m->run.ledger, count);
    result_judge(r);
    share_tail(r, m);
}
