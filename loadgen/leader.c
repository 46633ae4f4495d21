/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/leader.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "loadgen/followers.h"
#include "loadgen/inquiry.h"
#include "loadgen/leader_result.h"
#include "loadgen/measure/phases.h"
#include "loadgen/swarm/capacity.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/split.h"
#include "loadgen/swarm_start.h"
#include "loadgen/swarm_words.h"

#define LEAD_MIN (200 * NSEC_PER_MSEC) /* between the order to start and the start */
#define LEAD_TRACE NSEC_PER_SEC        /* likewise: traces are read ahead meanwhile */
#define CAPACITY_S 1 /* how long a closed loop tells what processes can send */
#define LEAD_WAYS 5  /* and this times the longest way to an agent */

struct leader {
    struct run_conf conf;
    const struct options *o;
    struct options own;    /* what this process sends itself; shallow */
    unsigned load_classes; /* those before the measuring client's */
    unsigned own_first;    /* of own.classes, among all */
    bool has_own;
    uint64_t count;                         /* attempts so far */
    nsec_t opened_at, ready_at, drained_at; /* of the last one: all results were there */
    struct followers followers;
    struct run *run;      /* NULL: no load of its own */
    unsigned lost_before; /* agents, when the run under way began */
    /* What of it this process has told the ledger, one of its classes each. */
    struct tally *told;
    struct tally look;
    uint64_t told_interval;
    sigset_t signals, mask_before;
    bool is_masked;
    struct inquiry inquiry;   /* of servers, without a run that asks them */
    struct capacity capacity; /* what is known of each process, this one first */
};

static enum options_loss
policy(const struct leader *l)
{
    enum options_loss usual = l->o->searches ? LOSS_ABORT : LOSS_CONTINUE;
    return l->o->on_agent_loss == LOSS_DEFAULT ? usual : l->o->on_agent_loss;
}

/* The first agent that will not take its part in the run; NULL: all do. That is no loss: it
 * would refuse the next one, too. With the mutex held. */
static struct follower *
refuser(const struct leader *l)
{
    struct follower *found = NULL;
    for (unsigned i = l->followers.count; i-- > 0;) {
        struct follower *k = &l->followers.all[i];
        found = k->has_refused ? k : found;
    }
    return found;
}

/* An agent was lost since the run began, and without it there is no use in going on. With
 * the mutex held. */
static bool
is_spoilt(const struct leader *l)
{
    bool goes_on = policy(l) == LOSS_CONTINUE || policy(l) == LOSS_ACCEPT;
    return refuser(l) != NULL ||
           (!goes_on && followers_in(&l->followers, FOLLOWER_LOST) > l->lost_before);
}

/* ---- opening ------------------------------------------------------------------------ */

/* The measuring client, when there is one, stands last. Unless there are agents that measure it
 * is this process's only class, and all others are the agents'; else everybody who loads has
 * all of the others. */
static void
make_own_options(struct leader *l)
{
    const struct options *o = l->o;
    bool has_measuring = o->classes[o->classes_len - 1].is_measuring;
    bool measures = has_measuring && options_agents_in(o, ROLE_MEASURE) == 0;
    l->has_own = o->weight > 0;
    l->load_classes = o->classes_len - (has_measuring ? 1 : 0);
    l->own_first = measures ? l->load_classes : 0;
    l->own = *o;
    l->own.wait_s = 0; /* all wait, by when they are told to begin */
    l->own.classes = &o->classes[l->own_first];
    l->own.classes_len = measures ? 1 : l->load_classes;
    if (options_agents_in(o, ROLE_OBSERVE) > 0) {
        l->own.server_stats_s = 0;
    }
}

/* Whether this process sends requests of the class. */
static bool
is_own(const struct leader *l, unsigned class)
{
    return l->has_own && class >= l->own_first &&
           class < l->own_first + l->own.classes_len;
}

static bool
take_signal(struct leader *l)
{
    struct timespec none = {0, 0};
    return sigtimedwait(&l->signals, NULL, &none) > 0;
}

/* As long as it takes; each agent shows that it is there meanwhile. The first that is lost has
 * a line. */
static enum exit_status
await_ready(struct leader *l)
{
    struct followers *k = &l->followers;
    enum exit_status status = EXIT_VALID;
    bool was_ended = false;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    while (!followers_are_ready(k) && followers_in(k, FOLLOWER_LOST) == 0 && !was_ended) {
        followers_wait(k);
        was_ended = take_signal(l);
    }
    for (unsigned i = 0; i < k->count && status == EXIT_VALID; i++) {
        if (k->all[i].state == FOLLOWER_LOST) {
            fprintf(stderr, "mcload: agent %s: %s\n", k->all[i].at.name, k->all[i].why);
            status = EXIT_UNREACHABLE;
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return was_ended ? swarm_fail("interrupted while agents were loading") : status;
}

static enum message_role
own_role(const struct leader *l)
{
    return l->own_first > 0 ? ROLE_MEASURE : ROLE_LOAD;
}

/* How many send the classes of a role, besides the agents: this process is the first. */
static unsigned
own_senders(const struct leader *l, enum message_role role)
{
    return l->has_own && role == own_role(l) ? 1 : 0;
}

/* All that send share the records, this process first. */
static enum exit_status
configure(struct leader *l, int argc, char **argv)
{
    struct followers *k = &l->followers;
    enum exit_status status = EXIT_VALID;
    unsigned number = l->has_own ? 1 : 0, senders[ROLES];
    for (unsigned role = 0; role < ROLES; role++) {
        senders[role] = own_senders(l, role);
    }
    for (unsigned i = 0; status == EXIT_VALID && i < k->count; i++) {
        struct follower *f = &k->all[i];
        struct swarm_reader reader = {f->role, f->observer, k->observers};
        struct swarm_words words;
        status = swarm_words_shared(&words, l->o, &reader, argc, argv, stderr);
        struct follower_conf conf = {
            .words = words.words,
            .words_len = words.count,
            .wants_secret = f->role != ROLE_OBSERVE && l->o->base.auth_file != NULL,
            .agent = f->role == ROLE_OBSERVE ? 0 : number++,
            .agents = k->count - k->observers + (l->has_own ? 1 : 0),
            .sender = senders[f->role]++,
            .senders = options_agents_in(l->o, f->role) + own_senders(l, f->role),
        };
        status = status != EXIT_VALID ? status : follower_configure(f, &conf);
        swarm_words_free(&words);
    }
    return status;
}

/* What this process has counted and measured itself goes the way of what agents report. With
 * the mutex held. */
static void
report_own(struct leader *l, unsigned own_class, uint64_t interval, struct tally *now)
{
    struct frame_out o = {.p = NULL};
    struct frame f;
    size_t taken;
    frame_begin(&o, MESSAGE_DELTA, 0, 0);
    delta_put(&o, now, &l->told[own_class]);
    bool is_good =
        frame_end(&o, 0) &&
        frame_parse(o.p, o.len, FRAME_MAX, 0, &f, &taken) == FRAME_DONE &&
        ledger_add(l->followers.ledger, 0, l->own_first + own_class, interval, &f);
    must(is_good);
    frame_out_fini(&o);
    tally_reset(&l->told[own_class]);
    tally_merge(&l->told[own_class], now);
}

/* By the run of this process, at the end of each interval but the last. */
static bool
tick(void *arg, const struct run *run, nsec_t now)
{
    struct leader *l = arg;
    struct followers *k = &l->followers;
    bool goes_on = l->conf.tick == NULL || l->conf.tick(l->conf.tick_arg, run, now);
    uint64_t interval = ledger_number(now - run_window(run)->start, k->time, k->length);
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    for (unsigned i = 0; interval > l->told_interval && i < l->own.classes_len; i++) {
        tally_reset(&l->look);
        run_sum(run, i, &l->look);
        report_own(l, i, interval, &l->look);
    }
    l->told_interval = interval > l->told_interval ? interval : l->told_interval;
    goes_on = goes_on && !is_spoilt(l);
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return goes_on;
}

static void
report_last(struct leader *l, const struct result *own)
{
    struct followers *k = &l->followers;
    bool is_whole = own->elapsed_s * 1e9 + 1e6 > (double)k->time;
    uint64_t last = ledger_last(k->time, k->length);
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    for (unsigned i = 0; i < own->classes_len; i++) {
        report_own(l, i, is_whole ? last : l->told_interval + 1, &own->classes[i].total);
    }
    ledger_done(k->ledger, 0);
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
}

static bool
make_told(struct leader *l)
{
    bool is_good = tally_init(&l->look);
    l->told = calloc(l->own.classes_len, sizeof *l->told);
    for (unsigned i = 0; is_good && l->told != NULL && i < l->own.classes_len; i++) {
        is_good = tally_init(&l->told[i]);
    }
    return is_good && l->told != NULL;
}

static enum exit_status
open_own(struct leader *l)
{
    struct run_conf conf = l->conf;
    if (!l->has_own) {
        return EXIT_VALID;
    }
    conf.options = &l->own;
    conf.tick = tick;
    conf.tick_arg = l;
    conf.agent = 0;
    conf.agents = l->followers.count - l->followers.observers + 1;
    conf.sender = 0;
    conf.senders = options_agents_in(l->o, own_role(l)) + 1;
    if (!make_told(l)) {
        return swarm_fail("out of memory");
    }
    return run_open(&l->run, &conf);
}

enum exit_status
leader_open(struct leader **leader, const struct run_conf *conf, int argc, char **argv)
{
    struct leader *l = calloc(1, sizeof *l);
    must(l != NULL);
    l->conf = *conf;
    l->o = conf->options;
    l->opened_at = clock_now();
    make_own_options(l);
    swarm_signals(&l->signals);
    enum exit_status status = followers_open(&l->followers, l->o, l->load_classes);
    if (!capacity_init(&l->capacity, l->o->agents_len + 1, l->o->classes_len)) {
        status = swarm_fail("out of memory");
    }
    status = status != EXIT_VALID ? status : configure(l, argc, argv);
    if (status == EXIT_VALID) {
        /* The thread of the followers must not take the signals. */
        PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &l->signals, &l->mask_before));
        l->is_masked = true;
        status = followers_start(&l->followers);
    }
    if (status == EXIT_VALID && l->has_own) {
        PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &l->mask_before, NULL));
        status = open_own(l);
        PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &l->signals, NULL));
    }
    status = status != EXIT_VALID ? status : await_ready(l);
    l->ready_at = clock_now();
    if (status == EXIT_VALID && !l->has_own) {
        status = inquiry_open(&l->inquiry, &l->own, conf->targets, conf->err);
        if (status == EXIT_VALID && !inquiry_learn(&l->inquiry, &l->own)) {
            status = swarm_fail("out of memory");
        }
    }
    *leader = l;
    if (status != EXIT_VALID) {
        leader_close(leader);
    }
    return status;
}

void
leader_close(struct leader **leader)
{
    struct leader *l = *leader;
    if (l == NULL) {
        return;
    }
    run_close(&l->run);
    followers_close(&l->followers);
    for (unsigned i = 0; l->told != NULL && i < l->own.classes_len; i++) {
        tally_fini(&l->told[i]);
    }
    free(l->told);
    tally_fini(&l->look);
    inquiry_fini(&l->inquiry);
    capacity_fini(&l->capacity);
    if (l->is_masked) {
        PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &l->mask_before, NULL));
    }
    free(l);
    *leader = NULL;
}

uint64_t
leader_loaded(const struct leader *l)
{
    uint64_t sum = l->run != NULL ? run_loaded(l->run) : 0;
    for (unsigned i = 0; i < l->followers.count; i++) {
        sum += l->followers.all[i].loaded; /* constant once all are ready */
    }
    return sum;
}

/* ---- one run ------------------------------------------------------------------------ */

/* Who sends a class, and how much of it: this process, then the agents. Returns the sum. */
static double
weigh(const struct leader *l, unsigned class, double weights[MESSAGE_AGENTS_MAX + 1])
{
    const struct followers *k = &l->followers;
    double sum = 0;
    weights[0] = is_own(l, class) ? (double)l->o->weight : 0;
    for (unsigned i = 0; i < k->count; i++) {
        bool has_it = !k->all[i].is_out && follower_has(&k->all[i], class);
        weights[i + 1] = has_it ? (double)k->all[i].weight : 0;
    }
    capacity_weigh(&l->capacity, class, weights);
    for (unsigned i = 0; i <= k->count; i++) {
        sum += weights[i];
    }
    return sum;
}

/* Whose share is that of what it can send: not of a client that measures, nor of a trace with
 * times of its own. */
static bool
has_capacity(const struct leader *l, unsigned class)
{
    const struct lclass *c = &l->o->classes[class];
    return l->o->splits_by_capacity && !c->is_measuring && !c->traffic.is_timed;
}

static double
rate_of(const struct leader *l, const struct run_shot *shot, unsigned class)
{
    return shot->rates != NULL ? shot->rates[class] : (double)l->o->classes[class].qps;
}

/* What each did in a closed loop that is over. False, with a line: one that is still there had
 * no answer. With the mutex held. */
static bool
learn_capacity(struct leader *l, const struct run_shot *shot, const struct result *own)
{
    const struct followers *k = &l->followers;
    double qps[MESSAGE_AGENTS_MAX + 1];
    for (unsigned class = 0; class < l->o->classes_len; class ++) {
        if (!has_capacity(l, class) || rate_of(l, shot, class) > 0) {
            continue;
        }
        for (unsigned i = 0; i <= k->count; i++) {
            const struct follower *f = i > 0 ? &k->all[i - 1] : NULL;
            bool takes_part = f != NULL ? follower_has(f, class) && !f->is_out &&
                                              f->state == FOLLOWER_DONE
                                        : is_own(l, class);
            double good = (double)ctr_get(&ledger_sum(k->ledger, i, class)->good);
            double seconds = f != NULL ? f->elapsed_s : own->elapsed_s;
            qps[i] = takes_part ? result_ratio(good, seconds) : 0;
            if (takes_part && !(qps[i] > 0)) {
                fprintf(stderr,
                        "mcload: %s has had no answer: its capacity is not known\n",
                        f != NULL ? f->at.name : "the leader");
                return false;
            }
        }
        capacity_learn(&l->capacity, class, qps);
    }
    return true;
}

/* The rate of a class among this process and those agents that are left. EXIT_INVALID: there
 * is nobody who would send it; EXIT_USAGE: one of them would get none, which is no rate but as
 * much as goes. */
static enum exit_status
split_class(struct leader *l, unsigned class, double rate, double *own_rates)
{
    struct followers *k = &l->followers;
    double weights[MESSAGE_AGENTS_MAX + 1];
    uint64_t shares[MESSAGE_AGENTS_MAX + 1];
    bool is_good = true;
    if (weigh(l, class, weights) == 0) {
        return EXIT_INVALID;
    }
    split_by_weight((uint64_t)llround(rate), weights, k->count + 1, shares);
    for (unsigned i = 0; i <= k->count; i++) {
        is_good = is_good && (rate == 0 || weights[i] == 0 || shares[i] > 0);
    }
    for (unsigned i = 0; i < k->count; i++) {
        if (follower_has(&k->all[i], class)) {
            k->all[i].rates[class - k->all[i].first_class] = shares[i + 1];
        }
    }
    if (is_own(l, class)) {
        own_rates[class - l->own_first] = (double)shares[0];
    }
    return is_good ? EXIT_VALID : EXIT_USAGE;
}

/* Slices of traces, one behind the other, for all that send a class. */
static void
split_traces(struct leader *l, unsigned class, struct reader_slice *own)
{
    struct followers *k = &l->followers;
    double weights[MESSAGE_AGENTS_MAX + 1];
    uint64_t shares[MESSAGE_AGENTS_MAX + 1], at = 0;
    if (weigh(l, class, weights) == 0) {
        return;
    }
    split_by_weight(READER_ROUTES, weights, k->count + 1, shares);
    for (unsigned i = 0; i <= k->count; i++) {
        if (weights[i] > 0) {
            struct reader_slice *slice = i == 0 ? own : &k->all[i - 1].slice;
            *slice = (struct reader_slice){at, at + shares[i]};
        }
        at += shares[i];
    }
}

static enum exit_status
split(struct leader *l, const struct run_shot *shot, double *own_rates,
      struct reader_slice *own_slice)
{
    struct followers *k = &l->followers;
    enum exit_status status = EXIT_VALID;
    for (unsigned i = 0; i < k->count; i++) {
        k->all[i].is_out = k->all[i].state == FOLLOWER_LOST;
        k->all[i].slice = (struct reader_slice){0, READER_ROUTES};
    }
    for (unsigned i = 0; status == EXIT_VALID && i < l->o->classes_len; i++) {
        status = split_class(l, i, rate_of(l, shot, i), own_rates);
        split_traces(l, i, own_slice);
    }
    if (status == EXIT_INVALID) {
        fputs("mcload: no agent is left\n", stderr);
    } else if (status == EXIT_USAGE) {
        fputs("mcload: the rate is too low to be shared out\n", stderr);
    }
    return status;
}

/* Nothing was reported yet, by anybody. */
static bool
start_ledger(struct leader *l)
{
    struct followers *k = &l->followers;
    struct ledger_part parts[MESSAGE_AGENTS_MAX + 1] = {{0, 0}};
    nsec_t start = k->begin + k->warmup;
    if (l->run != NULL) {
        parts[0] = (struct ledger_part){l->own_first, l->own_first + l->own.classes_len};
    }
    for (unsigned i = 0; i < k->count; i++) {
        const struct follower *f = &k->all[i];
        unsigned classes = f->is_out ? 0 : f->classes;
        parts[i + 1] = (struct ledger_part){f->first_class, f->first_class + classes};
    }
    for (unsigned i = 0; l->run != NULL && i < l->own.classes_len; i++) {
        tally_reset(&l->told[i]);
    }
    l->told_interval = 0;
    struct ledger_run run = {
        .parts = parts,
        .start = start,
        .end = start + k->time,
        .length = k->length,
        .row_length = (nsec_t)(l->o->interval_s * (double)NSEC_PER_SEC),
        .keeps_latencies = l->o->hlog != NULL,
    };
    return ledger_start(k->ledger, &run);
}

static bool
replays(const struct options *o)
{
    bool does = false;
    for (unsigned i = 0; i < o->classes_len; i++) {
        does = does || o->classes[i].trace.file.path != NULL;
    }
    return does;
}

/* Orders a start that all can keep: later than the longest way to any of them. False: no
 * memory. */
static bool
order_start(struct leader *l, const struct run_shot *shot)
{
    struct followers *k = &l->followers;
    nsec_t lead = replays(l->o) ? LEAD_TRACE : LEAD_MIN;
    for (unsigned i = 0; i < k->count; i++) {
        struct align_estimate e;
        if (align_estimate(&k->all[i].align, &e) && LEAD_WAYS * e.way_max > lead) {
            lead = LEAD_WAYS * e.way_max;
        }
    }
    double warmup = shot->warmup_s == 0 ? l->o->warmup_s : fmax(0, shot->warmup_s);
    double time = shot->time_s > 0 ? shot->time_s : l->o->time_s;
    k->time = (nsec_t)(time * (double)NSEC_PER_SEC);
    k->warmup = (nsec_t)(warmup * (double)NSEC_PER_SEC);
    k->length = ledger_length(k->time, (nsec_t)(l->o->interval_s * (double)NSEC_PER_SEC));
    k->is_fresh = shot->is_fresh;
    k->begin = clock_now() + lead;
    k->begin += l->count > 0 ? 0 : (nsec_t)(l->o->wait_s * (double)NSEC_PER_SEC);
    l->count++;
    server_stats_destroy(&k->stats);
    k->stats = k->observers > 0 ? server_stats_create(l->o->servers_len) : NULL;
    k->wants_start = start_ledger(l) && (k->observers == 0 || k->stats != NULL);
    k->wants_stop = false; /* it was asked of the attempt before */
    followers_wake(k);
    return k->wants_start;
}

/* With the mutex held. */
static void
stop_agents(struct leader *l)
{
    l->followers.wants_stop = true;
    followers_wake(&l->followers);
}

/* Without a load of its own the leader is the one that looks at the servers. */
static void
observe(struct leader *l)
{
    struct followers *k = &l->followers;
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    inquiry_look(&l->inquiry, clock_now());
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
}

/* Until each agent has reported or is lost. False: interrupted. */
static bool
await_results(struct leader *l, nsec_t until)
{
    struct followers *k = &l->followers;
    bool was_interrupted = false;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    while (k->wants_start || followers_in(k, FOLLOWER_RUNNING) > 0) {
        followers_wait(k);
        observe(l);
        if (take_signal(l)) {
            was_interrupted = true;
            stop_agents(l);
        }
        if (is_spoilt(l)) {
            stop_agents(l);
        }
        for (unsigned i = 0; i < k->count && clock_now() > until; i++) {
            if (k->all[i].state == FOLLOWER_RUNNING) {
                follower_lose(k, &k->all[i], "has no result in time");
            }
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return !was_interrupted;
}

/* With the followers' results in, or lost. */
static enum exit_status
collect(struct leader *l, const struct run_shot *shot, const struct result *own,
        const double *own_rates, bool was_interrupted, struct result *result)
{
    struct leader_parts parts = {
        .options = l->o,
        .shot = shot,
        .own = l->run != NULL ? own : NULL,
        .own_rates = own_rates,
        .own_first = l->own_first,
        .load_classes = l->load_classes,
        .was_interrupted = was_interrupted,
        .accepts_loss = policy(l) == LOSS_ACCEPT,
        .followers = &l->followers,
        .capacity = &l->capacity,
    };
    return leader_result_make(result, &parts) ? EXIT_VALID : swarm_fail("out of memory");
}

/* Whether the run was refused, which has a line then. */
static bool
tell_refusal(struct leader *l)
{
    struct follower *k = refuser(l);
    if (k != NULL) {
        fprintf(stderr, "mcload: agent %s: %s\n", k->at.name, k->why);
    }
    return k != NULL;
}

static void
tell_losses(struct leader *l)
{
    for (unsigned i = 0; i < l->followers.count; i++) {
        struct follower *k = &l->followers.all[i];
        if (k->state == FOLLOWER_LOST && !k->is_told) {
            fprintf(stderr, "mcload: agent %s is lost: %s\n", k->at.name, k->why);
            k->is_told = true;
        }
    }
}

/* How long the window was in the end, for the one for whom it was longest. */
static nsec_t
lasted(const struct followers *k, const struct result *own)
{
    double longest = own->elapsed_s;
    for (unsigned i = 0; i < k->count; i++) {
        longest = k->all[i].is_out ? longest : fmax(longest, k->all[i].elapsed_s);
    }
    return (nsec_t)(longest * (double)NSEC_PER_SEC);
}

/* Those of all together: until everybody was there, and until the last had its replies. What
 * was ended before its window began ended when all results were there. */
static void
tell_phases(const struct leader *l, const struct result *own, struct result *result)
{
    const struct followers *k = &l->followers;
    nsec_t start = k->begin + k->warmup, end = start + lasted(k, own);
    struct phase_times times = {
        .opened = l->opened_at,
        .ready = l->ready_at,
        .is_first = l->count == 1,
        .begin = k->begin,
        .start = start,
        .end = end < l->drained_at ? end : l->drained_at,
        .drained = l->drained_at,
    };
    phases_tell(&times, result->phases);
}

/* Of the agents that observe, else of this process. */
static struct server_stats *
take_stats(struct leader *l, struct result *own)
{
    struct server_stats **from =
        l->followers.observers > 0 ? &l->followers.stats : &own->server_stats;
    struct server_stats *stats = *from;
    *from = NULL;
    return stats != NULL ? stats : inquiry_take(&l->inquiry);
}

/* One attempt. *is_spoilt: an agent was lost, and the policy is not to go on with it. */
static enum exit_status
attempt(struct leader *l, const struct run_shot *shot, bool *spoilt,
        struct result *result)
{
    double own_rates[OPTIONS_CLASSES_MAX];
    struct followers *k = &l->followers;
    struct run_shot own_shot = *shot;
    struct result own = {0};
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    l->lost_before = followers_in(k, FOLLOWER_LOST);
    enum exit_status status = split(l, shot, own_rates, &own_shot.slice);
    if (status == EXIT_VALID && !order_start(l, shot)) {
        status = swarm_fail("out of memory");
    }
    own_shot.begin = k->begin;
    own_shot.tick_length = k->length;
    own_shot.rates = own_rates;
    nsec_t start = k->begin + k->warmup;
    nsec_t until = start + k->time + (nsec_t)(l->o->agent_wait_s * (double)NSEC_PER_SEC);
    if (status == EXIT_VALID && !inquiry_start(&l->inquiry, start, start + k->time)) {
        status = swarm_fail("out of memory");
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    if (status == EXIT_VALID && l->run != NULL) {
        status = run_once(l->run, &own_shot, &own);
    }
    if (status != EXIT_VALID) {
        return status;
    }
    if (l->run != NULL) {
        report_last(l, &own);
    }
    if (own.was_interrupted) {
        PTHREAD_OK(pthread_mutex_lock(&k->mutex));
        stop_agents(l);
        PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    }
    bool was_interrupted = !await_results(l, until) || own.was_interrupted;
    inquiry_end(&l->inquiry);
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    l->drained_at = clock_now();
    ledger_finish(k->ledger, k->begin + k->warmup + lasted(k, &own));
    followers_verify(k);
    *spoilt = is_spoilt(l);
    if (tell_refusal(l)) {
        status = EXIT_UNREACHABLE;
    } else {
        tell_losses(l);
        status = collect(l, shot, &own, own_rates, was_interrupted, result);
    }
    if (status == EXIT_VALID && !*spoilt && !was_interrupted &&
        !learn_capacity(l, shot, &own)) {
        result_fini(result);
        status = EXIT_INVALID;
    }
    if (status == EXIT_VALID) {
        tell_phases(l, &own, result);
        result->server_stats = take_stats(l, &own);
        result->server_settings = l->run != NULL
                                      ? server_settings_get(own.server_settings)
                                      : inquiry_settings(&l->inquiry);
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    if (l->run != NULL) {
        result_fini(&own);
    }
    return status;
}

static enum exit_status
attempt_all(struct leader *l, const struct run_shot *shot, struct result *result)
{
    for (;;) {
        bool spoilt = false;
        enum exit_status status = attempt(l, shot, &spoilt, result);
        if (status != EXIT_VALID || !spoilt) {
            return status;
        }
        bool was_interrupted = result->was_interrupted;
        result_fini(result);
        if (policy(l) == LOSS_ABORT || was_interrupted) {
            fputs("mcload: the run was given up\n", stderr);
            return EXIT_INVALID;
        }
        fputs("mcload: the run is repeated without it\n", stderr);
    }
}

/* Before the first rate that is shared out by capacity: a closed loop of these classes, for a
 * second at most. */
static enum exit_status
measure_capacity(struct leader *l, const struct run_shot *shot)
{
    double rates[OPTIONS_CLASSES_MAX];
    struct result result;
    bool is_wanted = false;
    for (unsigned i = 0; i < l->o->classes_len; i++) {
        rates[i] = rate_of(l, shot, i);
        if (has_capacity(l, i) && rates[i] > 0 && !l->capacity.is_known[i]) {
            rates[i] = 0;
            is_wanted = true;
        }
    }
    if (!is_wanted) {
        return EXIT_VALID;
    }
    struct run_shot probe = {
        .rates = rates,
        .time_s = fmin(CAPACITY_S, l->o->time_s),
        .warmup_s = -1,
        .is_fresh = shot->is_fresh,
    };
    enum exit_status status = attempt_all(l, &probe, &result);
    if (status == EXIT_VALID) {
        bool was_interrupted = result.was_interrupted;
        result_fini(&result);
        status = was_interrupted
                     ? swarm_fail("interrupted while capacities were measured")
                     : status;
    }
    return status;
}

enum exit_status
leader_once(struct leader *l, const struct run_shot *shot, struct result *result)
{
    enum exit_status status = measure_capacity(l, shot);
    return status == EXIT_VALID ? attempt_all(l, shot, result) : status;
}
