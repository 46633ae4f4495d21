/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/leader.h"

#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "loadgen/measure/result.h"
#include "loadgen/options/scope.h"
#include "loadgen/run/progress.h"
#include "loadgen/run/stats_poll.h"
#include "loadgen/swarm/leader/local.h"
#include "loadgen/swarm/leader/share_out.h"
#include "loadgen/swarm/message.h"

#define LEAD_MIN (200 * NSEC_PER_MSEC) /* between the order to start and the start */
#define LEAD_TRACE NSEC_PER_SEC        /* likewise: traces are read ahead meanwhile */
#define LEAD_WAYS 5                    /* and this times the longest way to an agent */
#define CAPACITY_S 1 /* how long a closed loop tells what processes can send */

struct leader {
    struct run_conf conf;
    const struct options *o;
    unsigned load_classes; /* those before the measuring client's */
    struct local local;
    uint64_t count, runs; /* attempts so far; less those at capacities */
    nsec_t opened_at, ready_at, drained_at; /* of the last one: all results were there */
    struct members members;
    unsigned lost_before; /* agents, when the run under way began */
    bool is_probing;      /* it only tells capacities */
    sigset_t signals, mask_before;
    struct stats_poll poll; /* of servers, without a run that asks them */
    struct progress progress;
    nsec_t progress_at; /* the next line, not before */
};

static enum options_loss
policy(const struct leader *l)
{
    enum options_loss usual = l->o->goal.is_given ? LOSS_ABORT : LOSS_CONTINUE;
    return l->o->on_agent_loss == LOSS_DEFAULT ? usual : l->o->on_agent_loss;
}

/* An agent was lost since the run began, and without it there is no use in going on: a loss is accepted
 * for what was measured before. With the mutex held. */
static bool
is_spoilt(const struct leader *l)
{
    bool goes_on = policy(l) == LOSS_CONTINUE ||
                   (policy(l) == LOSS_ACCEPT && !ledger_is_void(l->members.run.ledger));
    return members_refuser(&l->members) != NULL ||
           (!goes_on && members_in(&l->members, MEMBER_LOST) > l->lost_before);
}

/* ---- opening ------------------------------------------------------------------------ */

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
    struct members *k = &l->members;
    enum exit_status status = EXIT_VALID;
    bool was_ended = false;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    while (!members_are_ready(k) && members_in(k, MEMBER_LOST) == 0 && !was_ended) {
        members_wait(k);
        was_ended = take_signal(l);
    }
    for (unsigned i = 0; i < k->count && status == EXIT_VALID; i++) {
        if (k->all[i].state == MEMBER_LOST) {
            fprintf(stderr, "mcload: agent %s: %s\n", k->all[i].at.name, k->all[i].why);
            status = EXIT_UNREACHABLE;
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return was_ended ? options_fail(stderr, EXIT_UNREACHABLE,
                                    "interrupted while agents were loading")
                     : status;
}

/* Whose records and requests each has: all that send share the records, and all of a role the
 * classes, this process first. */
static enum exit_status
configure(struct leader *l, int argc, char **argv)
{
    struct members *m = &l->members;
    const struct member *self = &m->all[0];
    unsigned own = self->classes > 0 ? 1 : 0, number = own, senders[ROLES] = {0};
    enum exit_status status = EXIT_VALID;
    senders[self->role] = own;
    for (unsigned i = 1; status == EXIT_VALID && i < m->count; i++) {
        struct member *k = &m->all[i];
        struct scope_reader reader = {k->role, k->observer, m->run.observers};
        struct scope_words words;
        status = scope_tell_agent(&words, l->o, &reader, argc, argv, stderr) ? status
                                                                             : EXIT_USAGE;
        struct member_conf conf = {
            .words = words.words,
            .words_len = words.count,
            .wants_secret = k->role != ROLE_OBSERVE && l->o->base.auth_file != NULL,
            .agent = k->role == ROLE_OBSERVE ? 0 : number++,
            .agents = own + l->o->agents_len - m->run.observers,
            .sender = senders[k->role]++,
            .senders =
                options_agents_in(l->o, k->role) + (k->role == self->role ? own : 0),
        };
        status = status != EXIT_VALID ? status : member_configure(k, &conf);
        scope_words_fini(&words);
    }
    return status;
}

/* A line a second, up to the last interval that all have reported. With the mutex held. */
static void
tell_progress(struct leader *l)
{
    const struct swarm_run *run = &l->members.run;
    nsec_t start = run->begin + run->warmup, now = clock_now();
    nsec_t until = start + ledger_added(run->ledger) * run->length;
    struct progress_span span = {run->begin, start, start + run->time};
    if (!l->conf.has_progress || l->is_probing || now < l->progress_at) {
        return;
    }
    if (now < start) {
        progress_time(&span, now, l->conf.err);
    } else if (until > l->progress.at) {
        unsigned n, lost = members_in(&l->members, MEMBER_LOST);
        const struct counters *const *all = ledger_look(run->ledger, &n);
        progress_run(&l->progress, all, n, &span, lost, until, l->conf.err);
    } else {
        return;
    }
    l->progress_at = now + NSEC_PER_SEC;
}

/* By the run of this process, at the end of each interval but the last, and before the first. */
static bool
tick(void *arg, const struct run *run, nsec_t now)
{
    struct leader *l = arg;
    struct members *k = &l->members;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    local_tell(&l->local, &k->all[0], run, now);
    tell_progress(l);
    bool goes_on = !is_spoilt(l);
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return goes_on;
}

/* The thread of the members must not take the signals, the run of this process has to. */
static enum exit_status
open_own(struct leader *l)
{
    struct run_conf conf = l->conf;
    struct member *self = &l->members.all[0];
    conf.agent = conf.sender = 0;
    conf.agents = l->members.count - l->members.run.observers;
    conf.senders = options_agents_in(l->o, self->role) + 1;
    conf.tick = tick;
    conf.tick_arg = l;
    PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &l->mask_before, NULL));
    enum exit_status status = local_open(&l->local, &conf);
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &l->signals, NULL));
    self->loaded = status == EXIT_VALID ? run_loaded(l->local.run) : 0;
    return status;
}

/* Without a load of its own the leader looks at the servers itself. */
static enum exit_status
open_poll(struct leader *l)
{
    enum exit_status status =
        stats_poll_open(&l->poll, &l->local.options, l->conf.targets, l->conf.err);
    if (status == EXIT_VALID) {
        stats_poll_learn(&l->poll, &l->local.options);
    }
    return status;
}

enum exit_status
leader_open(struct leader **leader, const struct run_conf *conf, int argc, char **argv)
{
    struct leader *l = alloc_zeroed(1, sizeof *l);
    l->conf = *conf;
    l->o = conf->options;
    l->opened_at = clock_now();
    l->load_classes =
        l->o->classes_len - (l->o->classes[l->o->classes_len - 1].is_measuring ? 1 : 0);
    progress_init(&l->progress);
    run_signals(&l->signals);
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &l->signals, &l->mask_before));
    enum exit_status status =
        members_open(&l->members, l->o, l->load_classes, &l->signals);
    const struct member *self = &l->members.all[0];
    local_init(&l->local, l->o, self, l->load_classes);
    status = status != EXIT_VALID ? status : configure(l, argc, argv);
    status = status != EXIT_VALID ? status : members_start(&l->members);
    if (status == EXIT_VALID && self->classes > 0) {
        status = open_own(l);
    }
    status = status != EXIT_VALID ? status : await_ready(l);
    l->ready_at = clock_now();
    if (status == EXIT_VALID && self->classes == 0) {
        status = open_poll(l);
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
    local_fini(&l->local);
    members_close(&l->members);
    stats_poll_fini(&l->poll);
    progress_fini(&l->progress);
    PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &l->mask_before, NULL));
    free(l);
    *leader = NULL;
}

uint64_t
leader_loaded(const struct leader *l)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < l->members.count; i++) {
        sum += l->members.all[i].loaded; /* constant once all are ready */
    }
    return sum;
}

/* ---- one run ------------------------------------------------------------------------ */

/* Nothing was reported yet, by any agent. */
static void
start_ledger(struct leader *l)
{
    struct members *k = &l->members;
    struct ledger_part parts[MESSAGE_AGENTS_MAX + 1] = {{0, 0}};
    const struct swarm_run *run = &k->run;
    nsec_t start = run->begin + run->warmup;
    for (unsigned i = 0; i < k->count; i++) {
        const struct member *f = &k->all[i];
        unsigned classes = f->is_out ? 0 : f->classes;
        parts[i] = (struct ledger_part){f->first_class, f->first_class + classes};
    }
    struct ledger_run conf = {
        .parts = parts,
        .start = start,
        .end = start + run->time,
        .length = run->length,
        .row_length = clock_seconds(l->o->interval_s),
        .keeps_latencies = l->o->hlog != NULL,
    };
    ledger_start(run->ledger, &conf);
    for (unsigned i = 0; i < k->count; i++) {
        if (k->all[i].state == MEMBER_LOST && !k->all[i].is_out) {
            ledger_lose(run->ledger, i); /* since the run was shared out */
        }
    }
}

/* Orders a start that all can keep: later than the longest way to any of them. */
static void
order_start(struct leader *l, const struct run_spec *spec)
{
    struct members *k = &l->members;
    nsec_t lead = options_replay(l->o) ? LEAD_TRACE : LEAD_MIN;
    for (unsigned i = 0; i < k->count; i++) {
        struct align_estimate e;
        if (align_estimate(&k->all[i].align, &e) && LEAD_WAYS * e.way_max > lead) {
            lead = LEAD_WAYS * e.way_max;
        }
    }
    struct swarm_run *run = &k->run;
    run->time = clock_seconds(run_spec_time(l->o, spec));
    run->warmup = clock_seconds(run_spec_warmup(l->o, spec));
    run->length = interval_length(run->time, clock_seconds(l->o->interval_s));
    run->begin = clock_now() + lead;
    run->begin += l->count > 0 ? 0 : clock_seconds(l->o->wait_s);
    l->count++;
    l->runs += l->is_probing ? 0 : 1;
    server_stats_destroy(&run->stats);
    run->stats = run->observers > 0 ? server_stats_create(l->o->servers_len) : NULL;
    if (run->stats != NULL) {
        run->stats->end_s = (double)run->time / 1e9;
    }
    start_ledger(l);
    progress_reset(&l->progress, run->begin + run->warmup);
    l->progress_at = run->begin + NSEC_PER_SEC;
    k->wants_start = true;
    mbox_wake(&k->wake);
}

/* With the mutex held. */
static void
stop_agents(struct leader *l)
{
    l->members.wants_stop = true;
    mbox_wake(&l->members.wake);
}

/* Without a load of its own the leader is the one that looks at the servers. */
static void
observe(struct leader *l)
{
    struct members *k = &l->members;
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    stats_poll_look(&l->poll, clock_now());
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
}

/* Until each agent has reported or is lost. False: interrupted. */
static bool
await_results(struct leader *l, nsec_t until)
{
    struct members *k = &l->members;
    bool was_interrupted = false;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    while (k->wants_start || members_in(k, MEMBER_RUNNING) > 0) {
        members_wait(k);
        observe(l);
        tell_progress(l);
        if (take_signal(l)) {
            was_interrupted = true;
            stop_agents(l);
            /* The next one ends this process. */
            PTHREAD_OK(pthread_sigmask(SIG_UNBLOCK, &l->signals, NULL));
        }
        if (is_spoilt(l)) {
            stop_agents(l);
        }
        for (unsigned i = 0; i < k->count && clock_now() > until; i++) {
            if (k->all[i].state == MEMBER_RUNNING) {
                member_lose(&k->all[i], "has no result in time");
            }
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return !was_interrupted;
}

/* Whether the run was refused, which has a line then. */
static bool
tell_refusal(struct leader *l)
{
    const struct member *k = members_refuser(&l->members);
    if (k != NULL) {
        fprintf(stderr, "mcload: agent %s: %s%s\n", k->at.name, k->why,
                l->is_probing ? ": --split=capacity measures what each can send" : "");
    }
    return k != NULL;
}

/* Those of all together: until everybody was there, and until the last had its replies. What
 * was ended before its window began ended when all results were there. */
static void
tell_phases(const struct leader *l, struct result *result)
{
    const struct members *k = &l->members;
    nsec_t end = members_ended_at(k);
    struct phase_times times = {
        .opened = l->opened_at,
        .ready = l->ready_at,
        .is_first = l->runs == 1,
        .begin = k->run.begin,
        .start = k->run.begin + k->run.warmup,
        .end = end < l->drained_at ? end : l->drained_at,
        .drained = l->drained_at,
    };
    result->began_s = clock_wall_of(times.opened);
    result_phases(&times, result->phases);
}

/* Of the agents that observe, else of this process. */
static struct server_stats *
take_stats(struct leader *l, struct result *own)
{
    struct server_stats **from =
        l->members.run.observers > 0 ? &l->members.run.stats : &own->server_stats;
    struct server_stats *stats = *from;
    *from = NULL;
    return stats != NULL ? stats : stats_poll_take(&l->poll);
}

/* Before each run but the first: all make the connections that it needs, however long that takes. Only
 * then is it known when all can begin. */
static enum exit_status
renew(struct leader *l)
{
    struct members *k = &l->members;
    bool was_ended = false;
    if (l->count == 0) {
        return EXIT_VALID;
    }
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    k->wants_renew = true;
    k->wants_stop = false; /* it was asked of the attempt before */
    mbox_wake(&k->wake);
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    enum exit_status status =
        l->local.run != NULL ? run_renew(l->local.run, k->run.is_fresh) : EXIT_VALID;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    while (status == EXIT_VALID && !was_ended &&
           (k->wants_renew || members_in(k, MEMBER_OPENING) > 0)) {
        members_wait(k);
        was_ended = take_signal(l);
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return was_ended ? options_fail(stderr, EXIT_UNREACHABLE,
                                    "interrupted while connections were made anew")
                     : status;
}

/* Shares the run out and orders it, *own of this process. */
static enum exit_status
begin_attempt(struct leader *l, const struct run_spec *spec, struct run_spec *own)
{
    struct members *k = &l->members;
    struct swarm_run *run = &k->run;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    l->lost_before = members_in(k, MEMBER_LOST);
    enum exit_status status = share_out(k, spec);
    run->is_fresh = spec->is_fresh;
    for (unsigned i = 1; i < k->count; i++) {
        member_begin(&k->all[i]);
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    status = status == EXIT_VALID ? renew(l) : status;
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    if (status == EXIT_VALID) {
        order_start(l, spec);
        if (l->local.run != NULL) {
            *own = local_begin(&l->local, &k->all[0], spec);
        }
        nsec_t start = run->begin + run->warmup;
        stats_poll_start(&l->poll, start, start + run->time);
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    return status;
}

/* This process's part of it. */
static enum exit_status
run_own(struct leader *l, const struct run_spec *spec, struct result *own)
{
    struct members *k = &l->members;
    enum exit_status status = run_once(l->local.run, spec, own);
    if (status == EXIT_VALID) {
        PTHREAD_OK(pthread_mutex_lock(&k->mutex));
        local_end(&l->local, &k->all[0], own);
        if (own->was_interrupted) {
            stop_agents(l);
        }
        PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    }
    return status;
}

/* What all together came to. With the mutex held. */
static enum exit_status
end_attempt(struct leader *l, const struct run_spec *spec, bool was_interrupted,
            bool *spoilt, struct result *result)
{
    struct members *k = &l->members;
    l->drained_at = clock_now();
    if (l->conf.has_progress) {
        progress_end(l->conf.err);
    }
    ledger_finish(k->run.ledger, members_ended_at(k));
    for (unsigned i = 1; i < k->count; i++) {
        member_verify(&k->all[i]);
    }
    *spoilt = is_spoilt(l);
    if (tell_refusal(l)) {
        return EXIT_UNREACHABLE;
    }
    members_tell_losses(&l->members);
    combine_results(result, k, was_interrupted, policy(l) == LOSS_ACCEPT);
    if (!*spoilt && !was_interrupted && !share_out_learn(k, spec)) {
        result_fini(result);
        return EXIT_INVALID;
    }
    return EXIT_VALID;
}

/* One attempt. *spoilt: an agent was lost, and the policy is not to go on with it. */
static enum exit_status
attempt(struct leader *l, const struct run_spec *spec, bool *spoilt,
        struct result *result)
{
    struct members *k = &l->members;
    struct run_spec own_spec = *spec;
    struct result own = {0};
    enum exit_status status = begin_attempt(l, spec, &own_spec);
    if (status == EXIT_VALID && l->local.run != NULL) {
        status = run_own(l, &own_spec, &own);
    }
    if (status != EXIT_VALID) {
        return status;
    }
    nsec_t until =
        k->run.begin + k->run.warmup + k->run.time + clock_seconds(l->o->agent_wait_s);
    bool was_interrupted = !await_results(l, until) || own.was_interrupted;
    stats_poll_end(&l->poll);
    PTHREAD_OK(pthread_mutex_lock(&k->mutex));
    status = end_attempt(l, spec, was_interrupted, spoilt, result);
    if (status == EXIT_VALID) {
        tell_phases(l, result);
        result->server_stats = take_stats(l, &own);
        result->server_settings = l->local.run != NULL
                                      ? server_settings_get(own.server_settings)
                                      : stats_poll_settings(&l->poll);
    }
    PTHREAD_OK(pthread_mutex_unlock(&k->mutex));
    if (l->local.run != NULL) {
        result_fini(&own);
    }
    return status;
}

static enum exit_status
attempt_all(struct leader *l, const struct run_spec *spec, struct result *result)
{
    for (;;) {
        bool spoilt = false;
        enum exit_status status = attempt(l, spec, &spoilt, result);
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
        if (policy(l) != LOSS_ACCEPT) { /* whose runs say what was accepted */
            members_told(&l->members);
        }
    }
}

/* Before the first rate that is shared out by capacity: a closed loop of these classes, for a
 * second at most. */
static enum exit_status
measure_capacity(struct leader *l, const struct run_spec *spec)
{
    double rates[OPTIONS_CLASSES_MAX];
    struct result result;
    bool is_wanted = false;
    for (unsigned i = 0; i < l->o->classes_len; i++) {
        rates[i] = run_spec_rate(l->o, spec, i);
        if (share_out_has_capacity(l->o, i) && rates[i] > 0 &&
            !l->members.knows_capacity[i]) {
            rates[i] = 0;
            is_wanted = true;
        }
    }
    if (!is_wanted) {
        return EXIT_VALID;
    }
    struct run_spec probe = {
        .rates = rates,
        .time_s = fmin(CAPACITY_S, l->o->time_s),
        .warmup_s = -1,
        .is_fresh = spec->is_fresh,
    };
    l->is_probing = true;
    enum exit_status status = attempt_all(l, &probe, &result);
    l->is_probing = false;
    if (status == EXIT_VALID) {
        bool was_interrupted = result.was_interrupted;
        result_fini(&result);
        status = was_interrupted
                     ? options_fail(stderr, EXIT_UNREACHABLE,
                                    "interrupted while capacities were measured")
                     : status;
    }
    return status;
}

enum exit_status
leader_once(struct leader *l, const struct run_spec *spec, struct result *result)
{
    enum exit_status status = measure_capacity(l, spec);
    status = status == EXIT_VALID ? attempt_all(l, spec, result) : status;
    if (!spec->is_probe) {
        members_told(&l->members);
    }
    return status;
}
