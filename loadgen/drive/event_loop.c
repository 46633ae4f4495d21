/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/drive.h"

#include <stdlib.h>

#include "loadgen/drive/receiver.h"
#include "loadgen/drive/sender.h"
#include "loadgen/drive/reconnect.h"
#include "loadgen/work/streams.h"

#define TICK (50 * NSEC_PER_MSEC) /* between looks for time-outs */
#define TICK_MS 50
/* Before the begin of the window: polls, not sleeps. */
#define BEGIN_NEAR (5 * NSEC_PER_MSEC)
/* A real-time thread that never sleeps takes the CPU from all others on it; the kernel then
 * takes it back for 50 ms of each second. A sleep until the next request so often prevents it,
 * short as it may be. */
#define GIVE_WAY (200 * NSEC_PER_USEC)
#define SESSIONS_MAX 1048576 /* that wait for their next request, each thread */

static void
on_event(struct drive *d, struct lconn *c, unsigned can)
{
    if (c->state == LCONN_DOWN) {
        return; /* lost earlier in this batch */
    }
    nsec_t now = 0; /* not known */
    if (c->state == LCONN_CONNECTING) {
        life_connected(d, c, clock_now());
    } else if ((can & LSET_CAN_RECEIVE) != 0 && !answer_receive(d, c, &now)) {
        return;
    }
    if ((can & LSET_CAN_SEND) != 0 && c->state == LCONN_UP && !flow_flush(d, c)) {
        return;
    }
    if (unlikely(life_is_spent(d, c))) {
        life_replace(d, c, clock_now());
        return;
    }
    if (drive_is_open(d) && c->followups.count == 0) {
        flow_offer(d, c);
    } else {
        flow_fill(d, c, now != 0 ? now : clock_now());
    }
}

static unsigned
poll_events(struct drive *d, int timeout_ms)
{
    unsigned n = lset_wait(d->set, timeout_ms);
    for (unsigned i = 0; i < n; i++) {
        unsigned can;
        struct lconn *c = lset_event(d->set, i, &can);
        if (c != NULL) {
            on_event(d, c, can);
        }
    }
    return n;
}

/* ---- the loop ---------------------------------------------------------------------- */

static void
fill_all(struct drive *d, nsec_t now)
{
    for (unsigned i = 0; i < d->set->count; i++) {
        flow_fill(d, &d->set->conns[i], now);
    }
}

static void
start_timing(struct drive *d, nsec_t now)
{
    d->is_timed = true;
    d->timed_from = now;
    d->idle = 0;
    d->cost_from = cost_now();
    ctr_add(&d->tally->at_edges, d->little.count);
    if (d->window.quiet < d->window.start) {
        fill_all(d, now); /* a closed loop goes on */
    }
}

static void
stop_timing(struct drive *d, nsec_t now)
{
    if (!d->is_timed) {
        return;
    }
    struct cost cost = cost_now();
    d->cost.elapsed_s = (double)(now - d->timed_from) / 1e9;
    d->cost.cpu_s = cost.cpu_s - d->cost_from.cpu_s;
    d->cost.idle_s = (double)d->idle / 1e9;
    d->cost.wait_s = cost.wait_s - d->cost_from.wait_s;
    ctr_add(&d->tally->at_edges, d->little.count);
}

/* When there is something to do without an event from a connection. */
static nsec_t
next_duty(struct drive *d, nsec_t now)
{
    nsec_t duty = now < d->window.start ? d->window.start : d->window.end;
    nsec_t due = flow_next_due(d), retry = alarms_next(&d->retries);
    nsec_t fetch = alarms_next(&d->fetch.alarms);
    due = fetch < due ? fetch : due;
    duty = due < duty ? due : duty;
    return retry < duty ? retry : duty;
}

static bool
gives_way(const struct drive *d, nsec_t now)
{
    return d->conf.gives_way && now - d->slept_at >= GIVE_WAY;
}

/* Sleeps until shortly before the next duty, polls from then on. True when it polled and there
 * was nothing. */
static bool
wait_for_duty(struct drive *d, nsec_t now)
{
    nsec_t duty = next_duty(d, now), spin = d->conf.spin;
    bool is_near = duty <= now + spin;
    bool polls = (is_near || now - d->heard_at < d->conf.busy_poll) && !gives_way(d, now);
    if (!polls) {
        lset_wake_at(d->set, is_near ? duty : duty - spin);
        d->slept_at = now;
    }
    unsigned events = poll_events(d, polls ? 0 : TICK_MS);
    d->heard_at = events > 0 ? now : d->heard_at;
    return polls && events == 0;
}

static void
look_around(struct drive *d, nsec_t now)
{
    life_open_due(d, now);
    if (unlikely(d->w->conf.churn > 0)) {
        generator_at(&d->ask, now - d->window.begin);
    }
    if (unlikely(d->replay.book != NULL)) {
        replay_look(d, now);
    }
    if (now >= d->next_tick) {
        d->next_tick = now + TICK;
        life_time_out(d, now);
    }
}

/* Books what was moved since the last time and waits as it has to, until `end` at most. */
static nsec_t
hold(struct drive *d, nsec_t end, const atomic_bool *stop)
{
    nsec_t now = cap_hold(d->conf.cap, d->moved_requests, d->moved_bytes, end, stop);
    d->moved_requests = d->moved_bytes = 0;
    return now;
}

static bool
is_stopped(const struct drive *d)
{
    return atomic_load_explicit(d->conf.stop, memory_order_relaxed);
}

/* Nothing is measured when that is before the window. */
static void
end_at(struct drive *d, nsec_t now)
{
    d->window.end = now;
    d->window.start = now < d->window.start ? now : d->window.start;
}

static void
run_window(struct drive *d)
{
    nsec_t now = clock_now();
    while (now < d->window.end) {
        if (unlikely(d->conf.cap != NULL)) {
            now = hold(d, d->window.end, d->conf.stop);
        }
        if (!d->is_timed && now >= d->window.start) {
            start_timing(d, now);
        }
        if (is_stopped(d)) {
            end_at(d, now);
        }
        if (unlikely(d->w->conf.defers)) {
            fetch_send_due(d, now);
        }
        flow_send_due(d, now);
        bool is_idle = d->dirty_count == 0;
        flow_flush_all(d);
        is_idle = wait_for_duty(d, now) && is_idle;
        nsec_t before = now;
        now = clock_now();
        d->idle += is_idle ? now - before : 0;
        look_around(d, now);
    }
    stop_timing(d, now);
}

static unsigned
count_outstanding(const struct drive *d)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->set->count; i++) {
        n += d->set->conns[i].count;
    }
    return n;
}

static void
drain(struct drive *d)
{
    nsec_t give_up = d->window.end + DRIVE_DRAIN;
    nsec_t now = clock_now();
    replay_stop(d);
    flow_flush_all(d); /* what followed from the last answers */
    while (now < give_up && count_outstanding(d) > 0) {
        if (unlikely(d->conf.cap != NULL)) {
            hold(d, give_up, NULL); /* a run that was stopped has its limits as well */
        }
        lset_wake_at(d->set, give_up);
        poll_events(d, TICK_MS);
        now = clock_now();
        look_around(d, now);
    }
    if (d->conf.cap != NULL) {
        hold(d, now, NULL); /* whoever is next waits for it */
    }
    life_count_strays(d);
    life_count_unserved(d);
    for (unsigned i = 0; i < d->set->count; i++) {
        struct lconn *c = &d->set->conns[i];
        if (c->count > 0) {
            flow_forget(d, c, &d->tally->unanswered, now);
            lset_down(d->set, c); /* what comes yet would be a reply to nothing */
        }
    }
    flow_end(d, now);
}

/* ---- beginning and end --------------------------------------------------------------- */

/* The schedule is made before it is known when it starts: times count from 0. */
static struct arrival_conf
arrivals_of(const struct drive *d)
{
    const struct drive_conf *conf = &d->conf;
    const struct traffic *t = &conf->traffic;
    double rate = t->rate / traffic_session_mean(t);
    struct arrival_conf a = {
        .law = &t->arrivals,
        .rate = rate / conf->threads,
        .seed = conf->seed,
        .stream =
            stream_of(conf->agent, conf->first_thread + conf->thread, STREAM_ARRIVALS),
        .sources = 1,
        .every = 1,
        .schedule = schedule_varies(&t->schedule) ? &t->schedule : NULL,
    };
    if (t->scope == TRAFFIC_CONN && !arrival_adds_up(a.law)) {
        a.sources = d->set->count;
    } else if (t->scope == TRAFFIC_TOTAL && !arrival_adds_up(a.law)) {
        a.rate = rate;
        a.stream = stream_of(conf->agent, conf->first_thread, STREAM_ARRIVALS);
        a.every = conf->threads;
        a.first = conf->thread;
    }
    return a;
}

static bool
init_flow(struct drive *d)
{
    const struct traffic *t = &d->conf.traffic;
    bool is_partly = t->mode == TRAFFIC_PARTLY;
    struct arrival_conf arrivals = arrivals_of(d);
    uint64_t share = t->max_outstanding / d->conf.threads +
                     (d->conf.thread < t->max_outstanding % d->conf.threads ? 1 : 0);
    d->outstanding_max = t->max_outstanding == 0 ? UINT32_MAX : (unsigned)share;
    d->next = ALARMS_NEVER;
    d->pacing.late = t->late;
    pacer_init(&d->pacing.cap,
               t->late == LATE_CAP ? t->cap * t->rate / d->conf.threads : 0);
    pacer_init(&d->connects, t->connect_rate / d->conf.threads);
    /* Of sessions it is their begins that follow a law, and these cannot be told apart. */
    d->intended.each = d->issued.each =
        t->mode == TRAFFIC_OPEN ? gaps_each(t->rate / d->conf.threads) : 0;
    unsigned users = !is_partly && traffic_thinks(t) ? d->set->count * d->conf.depth : 0;
    return alarms_init(&d->users, users) &&
           alarms_init(&d->sessions, is_partly ? SESSIONS_MAX : 0) &&
           alarms_init(&d->retries, d->set->count) &&
           (!traffic_is_open(t) || d->w->book != NULL ||
            arrival_init(&d->arrival, &arrivals));
}

static bool
init_rooms(struct drive *d)
{
    const struct lset_conf *conf = &d->set->conf;
    d->has_rooms = d->w->book == NULL && (drive_is_open(d) || conf->shard != NULL);
    d->rooms_len = conf->shard != NULL ? conf->targets_len : 1;
    d->room_cap = d->set->count / d->rooms_len;
    d->rooms = calloc(d->rooms_len, sizeof *d->rooms);
    bool is_good = d->rooms != NULL;
    for (unsigned i = 0; is_good && i < d->rooms_len; i++) {
        d->rooms[i].ring = calloc(d->room_cap, sizeof(struct lconn *));
        is_good = d->rooms[i].ring != NULL;
    }
    return is_good;
}

bool
drive_init(struct drive *d, const struct drive_conf *conf, struct lset *set,
           struct tally *tally, struct evenness_log *evenness, struct samples *samples)
{
    *d = (struct drive){
        .conf = *conf,
        .set = set,
        .w = set->conf.workload,
        .tally = tally,
        .evenness = evenness,
        .samples = samples,
    };
    unsigned thread = conf->first_thread + conf->thread;
    rng_init(&d->rng, conf->seed, stream_of(conf->agent, thread, STREAM_MANNERS));
    for (unsigned i = 0; i < set->count; i++) {
        set->conns[i].in_room = set->conns[i].is_dirty = false;
    }
    d->dirty = calloc(set->count, sizeof(struct lconn *));
    d->lives = calloc(set->count, sizeof *d->lives);
    struct generator_conf ask = {
        .workload = d->w,
        .seed = conf->seed,
        .stream = stream_of(conf->agent, thread, STREAM_REQUESTS),
        .thread = conf->part,
        .threads = conf->parts,
        .shard = set->conf.shard,
    };
    if (!generator_init(&d->ask, &ask) || !init_rooms(d) || d->dirty == NULL ||
        d->lives == NULL || !init_flow(d) || !replay_init(d) || !fetch_init(d)) {
        drive_fini(d);
        return false;
    }
    return true;
}

void
drive_fini(struct drive *d)
{
    replay_fini(d);
    fetch_fini(d);
    arrival_fini(&d->arrival);
    alarms_fini(&d->users);
    alarms_fini(&d->sessions);
    alarms_fini(&d->retries);
    for (unsigned i = 0; d->rooms != NULL && i < d->rooms_len; i++) {
        free(d->rooms[i].ring);
    }
    free(d->rooms);
    free(d->dirty);
    free(d->lives);
    generator_fini(&d->ask);
    d->rooms = NULL;
    d->dirty = NULL;
    d->lives = NULL;
}

void
drive_run(struct drive *d, const struct drive_window *window)
{
    d->window = *window;
    d->next_tick = window->begin + TICK;
    d->heard_at = d->slept_at = window->begin;
    if (drive_is_open(d) && d->replay.book == NULL) {
        d->arrival.conf.start = window->begin;
        d->next = arrival_next(&d->arrival);
    }
    for (unsigned i = 0; i < d->set->count; i++) {
        life_begin(d, &d->set->conns[i]);
    }
    nsec_t now;
    while ((now = clock_now()) < window->begin && !is_stopped(d)) {
        bool is_near = window->begin - now < BEGIN_NEAR;
        if (!is_near) {
            lset_wake_at(d->set, window->begin - BEGIN_NEAR);
        }
        poll_events(d, is_near ? 0 : TICK_MS);
    }
    if (now >= window->begin) {
        fill_all(d, now);
    } else {
        end_at(d, now);
    }
    run_window(d);
    drain(d);
}
