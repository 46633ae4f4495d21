/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/combine.h"

#include <math.h>
#include <stdlib.h>

#define LEADER_NAME "leader"

/* Whether it is one of this process, and which of its own. */
static bool
is_own(const struct combine_parts *p, unsigned class, unsigned *own_class)
{
    *own_class = class - p->own_first;
    return p->own != NULL && class >= p->own_first && *own_class < p->own->classes_len;
}

static bool
is_agents(unsigned class, const struct follower *k)
{
    return follower_has(k, class) && !k->is_out;
}

/* An agent lists the costs of all its threads, class after class. */
static unsigned
first_thread(const struct options *o, const struct follower *k, unsigned class)
{
    unsigned first = 0;
    for (unsigned i = k->first_class; i < class; i++) {
        first += (unsigned)o->classes[i].threads;
    }
    return first;
}

static unsigned
threads_of(const struct combine_parts *p, unsigned class)
{
    unsigned here = (unsigned)p->options->classes[class].threads, own_class;
    unsigned sum = is_own(p, class, &own_class) ? here : 0;
    for (unsigned i = 0; i < p->followers->count; i++) {
        const struct follower *k = &p->followers->all[i];
        sum +=
            is_agents(class, k) && k->threads >= first_thread(p->options, k, class) + here
                ? here
                : 0;
    }
    return sum;
}

/* 0: the numbers are those of the whole run. */
static double
headline_s(const struct combine_parts *p)
{
    const struct followers *k = p->followers;
    return (double)(ledger_cut(k->run.ledger) * k->run.length) / 1e9;
}

static const struct tally *
headline(const struct combine_parts *p, unsigned part, unsigned class)
{
    return ledger_headline(p->followers->run.ledger, part, class);
}

static void
add_own(struct result *c, const struct combine_parts *p, unsigned class,
        unsigned own_class)
{
    const struct result *own = &p->own->classes[own_class];
    tally_merge(&c->total, headline(p, 0, class));
    memcpy(c->costs, own->costs, own->threads * sizeof *c->costs);
    c->qps += p->own_rates[own_class];
    c->elapsed_s = fmax(c->elapsed_s, own->elapsed_s);
    c->is_local = c->is_local || own->is_local;
}

/* An agent that was lost counts with what it had reported. */
static unsigned
add_follower(struct result *c, const struct combine_parts *p, unsigned index,
             unsigned class, unsigned first)
{
    const struct follower *k = &p->followers->all[index];
    unsigned from = first_thread(p->options, k, class);
    unsigned here = (unsigned)p->options->classes[class].threads;
    tally_merge(&c->total, headline(p, index + 1, class));
    c->qps += (double)k->rates[class - k->first_class];
    c->elapsed_s = fmax(c->elapsed_s, k->elapsed_s);
    c->is_local = c->is_local || k->is_local;
    if (k->threads < from + here) {
        return first;
    }
    memcpy(&c->costs[first], &k->costs[from], here * sizeof *c->costs);
    return first + here;
}

static bool
make_class(struct result *c, const struct combine_parts *p, unsigned class)
{
    unsigned threads = threads_of(p, class), first = 0, own_class;
    const struct lclass *conf = &p->options->classes[class];
    if (!result_init(c, threads)) {
        return false;
    }
    if (is_own(p, class, &own_class)) {
        add_own(c, p, class, own_class);
        first = (unsigned)conf->threads;
    }
    for (unsigned i = 0; i < p->followers->count; i++) {
        if (is_agents(class, &p->followers->all[i])) {
            first = add_follower(c, p, i, class, first);
        }
    }
    must(first == threads);
    if (headline_s(p) > 0) {
        c->elapsed_s = headline_s(p);
    }
    c->series = ledger_take_series(p->followers->run.ledger, class);
    c->name = conf->name;
    c->slo = conf->slo;
    c->from = p->options->from_issue ? FROM_ISSUE : FROM_INTENDED;
    bool is_timed = conf->traffic.is_timed; /* what it offers is the trace's to say */
    c->is_replay = conf->trace.file.path != NULL;
    if (is_timed) {
        c->qps = result_ratio((double)ctr_get(&c->total.offered), c->elapsed_s);
    }
    c->is_open = c->qps > 0 || is_timed;
    c->limits = &p->options->limits;
    c->gap_each = conf->traffic.mode == TRAFFIC_PARTLY || !c->is_open || threads == 0 ||
                          c->is_replay
                      ? 0
                      : gaps_each(c->qps / threads);
    c->mode = traffic_mode_name(is_timed     ? TRAFFIC_OPEN
                                : c->is_open ? conf->traffic.mode
                                             : TRAFFIC_CLOSED);
    c->is_uneven = schedule_varies(&conf->traffic.schedule) || is_timed;
    c->is_antagonist = conf->antagonist != NULL;
    c->hits_expected = run_hits_expected(conf);
    c->was_interrupted = p->was_interrupted;
    return true;
}

/* ---- what became of each process ---------------------------------------------------- */

static void
describe(struct result_agent *a, const char *name, struct tally *const *tallies,
         unsigned count, double elapsed_s)
{
    struct hist *all = hist_create(TALLY_SUB_BITS, TALLY_MAX_NS);
    struct hist *lag = hist_create(TALLY_SUB_BITS, TALLY_MAX_NS);
    must(all != NULL && lag != NULL);
    uint64_t offered = 0, good = 0, kept = 0;
    for (unsigned i = 0; i < count; i++) {
        struct tally *t = tallies[i];
        offered += ctr_get(&t->offered);
        good += ctr_get(&t->good);
        kept += ctr_get(&t->within[WITHIN_1MS]);
        hist_merge(lag, t->lag);
        for (unsigned verb = 0; verb < TALLY_VERBS; verb++) {
            hist_merge(all, t->latency[FROM_INTENDED][verb]);
        }
    }
    snprintf(a->name, sizeof a->name, "%s", name);
    a->offered = offered;
    a->achieved = good;
    a->adherence = result_ratio((double)kept, (double)offered);
    a->elapsed_s = elapsed_s;
    a->p50 = hist_quantile(all, .5);
    a->p99 = hist_quantile(all, .99);
    a->lag_p99 = hist_quantile(lag, .99);
    hist_destroy(&all);
    hist_destroy(&lag);
}

static double
busiest(const struct cost *costs, unsigned threads)
{
    double most = 0;
    for (unsigned i = 0; i < threads; i++) {
        most = fmax(most, result_busy(&costs[i]));
    }
    return most;
}

static void
describe_follower(struct result_agent *a, const struct combine_parts *p, unsigned index)
{
    struct tally *tallies[OPTIONS_CLASSES_MAX];
    struct align_estimate e = {0};
    const struct follower *k = &p->followers->all[index];
    const struct ledger *ledger = p->followers->run.ledger;
    uint64_t intervals = ledger_reported(ledger, index + 1);
    for (unsigned i = 0; i < k->classes; i++) {
        tallies[i] = ledger_sum(ledger, index + 1, k->first_class + i);
        a->qps += (double)k->rates[i];
    }
    describe(a, k->at.name, tallies, k->classes,
             k->elapsed_s > 0 && !k->is_out
                 ? k->elapsed_s
                 : (double)(intervals * p->followers->run.length) / 1e9);
    a->role = message_role_name(k->role);
    a->capacity = capacity_of(p->capacity, index + 1);
    a->samples = k->samples;
    a->observed = k->servers;
    a->busy = busiest(k->costs, k->threads);
    a->start_error = k->start_error;
    a->clock_bound = align_estimate(&k->align, &e) ? e.bound : 0;
    a->intervals = intervals;
    a->behind = k->behind_max;
    a->is_lost = k->state == FOLLOWER_LOST;
    snprintf(a->why, sizeof a->why, "%s", k->why);
}

/* Who had no part in the run is not told of, unless it should have had one. */
static bool
is_told(const struct follower *k)
{
    return !k->is_out || k->is_missed;
}

static bool
make_agents(struct result *r, const struct combine_parts *p)
{
    struct tally *tallies[OPTIONS_CLASSES_MAX];
    unsigned count = p->followers->count + (p->own != NULL ? 1 : 0), at = 0;
    r->agents = calloc(count, sizeof *r->agents);
    if (r->agents == NULL) {
        return false;
    }
    if (p->own != NULL) {
        for (unsigned i = 0; i < p->own->classes_len; i++) {
            tallies[i] = &p->own->classes[i].total;
            r->agents[0].qps += p->own_rates[i];
        }
        describe(&r->agents[0], LEADER_NAME, tallies, p->own->classes_len,
                 p->own->elapsed_s);
        r->agents[0].role =
            message_role_name(p->own_first > 0 ? ROLE_MEASURE : ROLE_LOAD);
        r->agents[0].busy = busiest(p->own->costs, p->own->threads);
        r->agents[0].capacity = capacity_of(p->capacity, 0);
        at = 1;
    }
    for (unsigned i = 0; i < p->followers->count; i++) {
        if (is_told(&p->followers->all[i])) {
            describe_follower(&r->agents[at++], p, i);
        }
    }
    r->agents_len = at;
    return true;
}

/* Slower than that, from the intended start, among what these have counted. */
static uint64_t
count_above(struct tally *const *tallies, unsigned count, uint64_t limit)
{
    uint64_t above = 0;
    for (unsigned i = 0; i < count; i++) {
        for (unsigned verb = 0; verb < TALLY_VERBS; verb++) {
            above += hist_above(tallies[i]->latency[FROM_INTENDED][verb], limit);
        }
    }
    return above;
}

/* One process that makes most of the tail is seen here, and not in the sum. */
static void
share_tail(struct result *r, const struct combine_parts *p)
{
    struct tally *tallies[OPTIONS_CLASSES_MAX];
    uint64_t limit = hist_quantile(r->all[FROM_INTENDED], .99), above = 0, good = 0;
    unsigned at = 0;
    for (unsigned part = 0; part <= p->followers->count; part++) {
        const struct follower *k = part > 0 ? &p->followers->all[part - 1] : NULL;
        if (k != NULL ? !is_told(k) : p->own == NULL) {
            continue;
        }
        unsigned classes = k != NULL ? k->classes : p->own->classes_len;
        unsigned first = k != NULL ? k->first_class : p->own_first;
        for (unsigned i = 0; i < classes; i++) {
            tallies[i] = ledger_sum(p->followers->run.ledger, part, first + i);
        }
        r->agents[at].tail_share = (double)count_above(tallies, classes, limit);
        r->agents[at].share = (double)r->agents[at].achieved;
        above += (uint64_t)r->agents[at].tail_share;
        good += r->agents[at].achieved;
        at++;
    }
    for (unsigned i = 0; i < at; i++) {
        r->agents[i].tail_share = result_ratio(r->agents[i].tail_share, (double)above);
        r->agents[i].share = result_ratio(r->agents[i].share, (double)good);
    }
}

/* What those that were left were still offered, and what they achieved of it. */
static void
make_loss(struct result *r, const struct combine_parts *p, double elapsed_s)
{
    const struct ledger *ledger = p->followers->run.ledger;
    for (unsigned i = 0; i < r->agents_len; i++) {
        r->loss.has_happened = r->loss.has_happened || r->agents[i].is_lost;
    }
    r->loss.is_accepted = p->accepts_loss;
    for (unsigned i = 0; i < p->followers->count; i++) {
        const struct follower *k = &p->followers->all[i];
        r->loss.is_accepted = r->loss.is_accepted && (k->is_out || !k->is_wrong);
    }
    r->loss.headline_s = headline_s(p);
    if (!r->loss.has_happened || r->loss.headline_s == 0) {
        return;
    }
    r->loss.after_s = fmax(0, elapsed_s - r->loss.headline_s);
    for (unsigned i = 0; i <= p->followers->count; i++) {
        for (unsigned c = 0; c < r->classes_len; c++) {
            struct tally *all = ledger_sum(ledger, i, c);
            const struct tally *before = ledger_headline(ledger, i, c);
            r->loss.after_offered += ctr_get(&all->offered) - ctr_get(&before->offered);
            r->loss.after_achieved += ctr_get(&all->good) - ctr_get(&before->good);
        }
    }
}

/* Of the process for which it was longest. */
static double
longest(const struct combine_parts *p)
{
    double own = p->own != NULL ? p->own->elapsed_s : 0;
    return fmax(own, followers_longest(p->followers));
}

bool
combine_results(struct result *r, const struct combine_parts *p)
{
    unsigned count = p->options->classes_len, threads = 0, first = 0;
    for (unsigned i = 0; i < count; i++) {
        threads += threads_of(p, i);
    }
    if (!result_init_classes(r, threads, count)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!make_class(&r->classes[i], p, i) ||
            !result_add_class(r, &r->classes[i], first)) {
            result_fini(r);
            return false;
        }
        first += r->classes[i].threads;
    }
    r->from = p->options->from_issue ? FROM_ISSUE : FROM_INTENDED;
    r->mode = count == 1 ? r->classes[0].mode : NULL;
    r->limits = &p->options->limits;
    r->gap_each = count == 1 ? r->classes[0].gap_each : 0;
    r->has_shown = p->load_classes < count;
    r->shown = r->has_shown ? p->load_classes : 0;
    if (!make_agents(r, p)) {
        result_fini(r);
        return false;
    }
    make_loss(r, p, longest(p));
    r->series = ledger_take_series(p->followers->run.ledger, count);
    result_judge(r);
    share_tail(r, p);
    return true;
}
