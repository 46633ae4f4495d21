/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/event_loop.h"

#include <time.h>

#define TICK (50 * NSEC_PER_MSEC) /* between looks for time-outs */
#define TICK_MS 50
/* Before the begin of the window: polls, not sleeps. */
#define BEGIN_NEAR (5 * NSEC_PER_MSEC)

/* ---- connections ---------------------------------------------------------------------- */

static void
tell_lost(struct event_loop *l, const struct lconn *c, nsec_t now)
{
    for (struct source *s = l->sources; s != NULL; s = s->next) {
        if (s->ops->lost != NULL) {
            s->ops->lost(s, c, now);
        }
    }
}

static void
forget(struct event_loop *l, struct lconn *c, nsec_t now)
{
    struct request_op op;
    while (sender_forget(&l->sender, c, false, now, &op)) {
        if (l->source->ops->gone != NULL) {
            l->source->ops->gone(l->source, &op, now);
        }
    }
}

static void
lose(struct event_loop *l, struct lconn *c, enum counters_error why, nsec_t now)
{
    forget(l, c, now);
    reconnect_lose(&l->reconnect, c, why, now);
    tell_lost(l, c, now);
}

static void
replace(struct event_loop *l, struct lconn *c, nsec_t now)
{
    forget(l, c, now);
    reconnect_replace(&l->reconnect, c, now);
}

static void
connect_on(struct event_loop *l, struct lconn *c, nsec_t now)
{
    if (!reconnect_go_on(&l->reconnect, c, now)) {
        tell_lost(l, c, now);
    } else if (c->state == LCONN_UP && l->source->ops->up != NULL) {
        l->source->ops->up(l->source, c);
    }
}

/* False when c is gone. */
static bool
flush(struct event_loop *l, struct lconn *c)
{
    if (likely(sender_flush(&l->sender, c))) {
        return true;
    }
    lose(l, c, COUNTERS_DISCONNECT, drive_now(&l->drive));
    return false;
}

static void
flush_all(struct event_loop *l)
{
    struct sender *sender = &l->sender;
    const struct source *source = l->source;
    for (unsigned i = 0; i < sender->dirty_count; i++) {
        struct lconn *c = sender->dirty[i];
        c->is_dirty = false;
        if (c->state == LCONN_UP && flush(l, c) && source->ops->room != NULL) {
            source->ops->room(l->source, c); /* a full buffer may have been the limit */
        }
    }
    sender->dirty_count = 0;
}

/* Gives c, which is up, what it may have: what follows from its answers, then what else. */
static void
fill(struct event_loop *l, struct lconn *c, nsec_t now)
{
    unsigned before;
    do {
        before = c->count;
        if (unlikely(c->followups.count > 0)) {
            (void)sender_push_followups(&l->sender, c, now);
        }
        for (struct source *s = l->sources; s != NULL; s = s->next) {
            s->ops->push(s, c, now);
        }
        if (!l->source->flushes_at_once) {
            if (c->count != before) {
                sender_make_dirty(&l->sender, c);
            }
            return;
        }
    } while (c->count != before && flush(l, c) && c->count < l->drive.conf.depth);
}

static void
fill_all(struct event_loop *l, nsec_t now)
{
    for (unsigned i = 0; i < l->drive.set->count; i++) {
        fill(l, &l->drive.set->conns[i], now);
    }
}

/* False when c is gone. */
static bool
receive(struct event_loop *l, struct lconn *c, nsec_t *now)
{
    switch (receiver_receive(&l->receiver, c, now)) {
    case RECEIVER_GOES_ON:
        return true;
    case RECEIVER_CLOSED:
        /* What was sent behind the request that this answers is lost. */
        drive_error(&l->drive, COUNTERS_DISCONNECT, c->count > 0 ? 1 : 0, *now);
        replace(l, c, *now);
        return false;
    case RECEIVER_LOST:
        lose(l, c, COUNTERS_DISCONNECT, *now);
        return false;
    case RECEIVER_DESYNC:
        break;
    }
    lose(l, c, COUNTERS_DESYNC, *now);
    return false;
}

static void
on_event(struct event_loop *l, struct lconn *c, unsigned can)
{
    nsec_t now = 0; /* not known */
    if (c->state == LCONN_DOWN) {
        return; /* lost earlier in this batch */
    }
    if (unlikely(c->state == LCONN_CONNECTING)) {
        now = drive_now(&l->drive);
        connect_on(l, c, now);
        if (c->state != LCONN_UP) {
            return;
        }
    } else if ((can & LSET_CAN_RECEIVE) != 0 && !receive(l, c, &now)) {
        return;
    }
    if ((can & LSET_CAN_SEND) != 0 && c->state == LCONN_UP && !flush(l, c)) {
        return;
    }
    now = now != 0 ? now : drive_now(&l->drive);
    if (unlikely(reconnect_is_spent(&l->reconnect, c))) {
        replace(l, c, now);
        return;
    }
    fill(l, c, now);
}

static unsigned
poll_events(struct event_loop *l, int timeout_ms)
{
    unsigned n = lset_wait(l->drive.set, timeout_ms);
    for (unsigned i = 0; i < n; i++) {
        unsigned can;
        struct lconn *c = lset_event(l->drive.set, i, &can);
        if (c != NULL) {
            on_event(l, c, can);
        }
    }
    return n;
}

/* A UNIX socket is up at once and no event says so: it gets its requests here. */
static void
open_due(struct event_loop *l, nsec_t now)
{
    while (reconnect_next_due(&l->reconnect) <= now && now < l->drive.window.end) {
        struct lconn *c = reconnect_take(&l->reconnect, now);
        if (c == NULL) {
            continue;
        }
        connect_on(l, c, now);
        fill(l, c, now);
    }
}

/* Datagrams that answered nothing any more. */
static void
count_strays(struct event_loop *l, nsec_t now)
{
    struct lset *set = l->drive.set;
    drive_error(&l->drive, COUNTERS_LATE, set->late, now);
    drive_error(&l->drive, COUNTERS_DUPLICATE, set->duplicate, now);
    set->late = set->duplicate = 0;
}

static void
time_out(struct event_loop *l, nsec_t now)
{
    enum counters_error why;
    count_strays(l, now);
    for (unsigned i = 0; i < l->drive.set->count; i++) {
        struct lconn *c = &l->drive.set->conns[i];
        if (c->is_framed && c->state == LCONN_UP) {
            if (receiver_give_up(&l->receiver, c, now)) {
                drive_conn_of(&l->drive, c)->was_in_vain = true;
                fill(l, c, now);
            }
        } else if (reconnect_is_overdue(&l->reconnect, c, now, &why)) {
            lose(l, c, why, now);
        }
    }
}

/* ---- the window ----------------------------------------------------------------------- */

static void
start_timing(struct event_loop *l, nsec_t now)
{
    const struct drive_window *w = &l->drive.window;
    l->is_timed = true;
    l->timed_from = now;
    l->idle = 0;
    l->cost_from = cost_now();
    if (w->quiet < w->start) {
        fill_all(l, now); /* a closed loop goes on */
    }
}

static void
stop_timing(struct event_loop *l, nsec_t now)
{
    if (!l->is_timed) {
        return;
    }
    struct cost cost = cost_now();
    l->cost.elapsed_s = (double)(now - l->timed_from) / 1e9;
    l->cost.cpu_s = cost.cpu_s - l->cost_from.cpu_s;
    l->cost.idle_s = (double)l->idle / 1e9;
    l->cost.wait_s = cost.wait_s - l->cost_from.wait_s;
}

/* When there is something to do without an event from a connection. */
static nsec_t
next_due(const struct event_loop *l, nsec_t now)
{
    const struct drive_window *w = &l->drive.window;
    nsec_t due = now < w->start ? w->start : w->end;
    nsec_t when = reconnect_next_due(&l->reconnect);
    due = when < due ? when : due;
    for (struct source *s = l->sources; s != NULL; s = s->next) {
        when = s->ops->next_due(s);
        due = when < due ? when : due;
    }
    return due;
}

/* Whether it has polled more than a real-time thread may. Where requests leave no pause for it, it
 * sleeps here, briefly. */
static bool
gives_way(struct event_loop *l, nsec_t now)
{
    if (l->drive.conf.gives_way && now - l->way.at >= GIVE_WAY_LOOK) {
        give_way_look(&l->way, clock_of_thread(), now);
        nsec_t nap = give_way_nap(&l->way);
        if (nap > 0) {
            nanosleep(&(struct timespec){0, (long)nap}, NULL);
        }
    }
    return give_way_is_owed(&l->way);
}

/* Sleeps until shortly before something is due, polls from then on. True when it polled and
 * there was nothing. */
static bool
wait_for_due(struct event_loop *l, nsec_t now)
{
    const struct drive_conf *conf = &l->drive.conf;
    bool is_behind = gives_way(l, now);
    nsec_t due = next_due(l, now);
    bool is_near = due <= now + conf->spin;
    bool polls = is_near || (now - l->heard_at < conf->busy_poll && !is_behind);
    if (!polls) {
        lset_wake_at(l->drive.set, due - conf->spin);
    }
    unsigned events = poll_events(l, polls ? 0 : TICK_MS);
    l->heard_at = events > 0 ? now : l->heard_at;
    return polls && events == 0;
}

static inline bool
has_to_look(const struct event_loop *l, nsec_t now)
{
    return now >= l->next_tick || reconnect_next_due(&l->reconnect) <= now ||
           l->source->ops->is_over != NULL;
}

static void
look_around(struct event_loop *l, nsec_t now)
{
    struct drive_window *w = &l->drive.window;
    struct source *s = l->source;
    open_due(l, now);
    if (s->ops->is_over != NULL && !l->has_ended && now < w->end &&
        s->ops->is_over(s, now)) {
        w->end = now > w->start ? now : w->start;
        l->has_ended = true;
        if (l->drive.conf.over != NULL) {
            atomic_fetch_add_explicit(l->drive.conf.over, 1, memory_order_relaxed);
        }
    }
    if (now >= l->next_tick) {
        l->next_tick = now + TICK;
        time_out(l, now);
    }
}

/* Books what was moved since the last time and waits as it has to, until `end` at most. */
static nsec_t
hold(struct event_loop *l, nsec_t end, const atomic_bool *stop)
{
    struct sender *s = &l->sender;
    nsec_t now =
        cap_throttle(l->drive.conf.cap, s->moved_requests, s->moved_bytes, end, stop);
    s->moved_requests = s->moved_bytes = 0;
    return now;
}

static bool
is_stopped(const struct event_loop *l)
{
    return atomic_load_explicit(l->drive.conf.stop, memory_order_relaxed);
}

/* Nothing is measured when that is before the window. */
static void
end_at(struct event_loop *l, nsec_t now)
{
    struct drive_window *w = &l->drive.window;
    w->end = now;
    w->start = now < w->start ? now : w->start;
}

static void
run_window(struct event_loop *l)
{
    const struct drive *d = &l->drive;
    nsec_t now = drive_now(d);
    while (now < d->window.end) {
        if (unlikely(d->conf.cap != NULL)) {
            now = hold(l, d->window.end, d->conf.stop);
        }
        if (!l->is_timed && now >= d->window.start) {
            start_timing(l, now);
        }
        if (is_stopped(l)) {
            end_at(l, now);
        }
        for (struct source *s = l->sources; s != NULL; s = s->next) {
            s->ops->send_due(s, now);
        }
        bool is_idle = l->sender.dirty_count == 0;
        if (!is_idle) {
            flush_all(l);
        }
        sender_count_alike(&l->sender);
        receiver_count_alike(&l->receiver);
        is_idle = wait_for_due(l, now) && is_idle;
        nsec_t before = now;
        now = drive_now(d);
        l->idle += is_idle ? now - before : 0;
        if (unlikely(has_to_look(l, now))) {
            look_around(l, now);
        }
    }
    stop_timing(l, now);
}

static unsigned
count_outstanding(const struct lset *set)
{
    unsigned n = 0;
    for (unsigned i = 0; i < set->count; i++) {
        n += set->conns[i].count;
    }
    return n;
}

static bool
has_left(struct event_loop *l, nsec_t now)
{
    struct source *s = l->source;
    return s->ops->count_left != NULL && s->ops->count_left(s, now);
}

static void
drain(struct event_loop *l)
{
    struct drive *d = &l->drive;
    nsec_t give_up = d->window.end + DRIVE_DRAIN;
    nsec_t now = drive_now(d);
    flush_all(l); /* what followed from the last answers */
    bool reads = has_left(l, now), is_over = false;
    while (!is_over && (reads || count_outstanding(d->set) > 0)) {
        if (unlikely(d->conf.cap != NULL)) {
            hold(l, give_up, NULL); /* a run that was stopped has its limits as well */
        }
        /* Late itself, as it had no CPU, it looks once more at what has come. */
        is_over = now >= give_up;
        lset_wake_at(d->set, give_up);
        poll_events(l, is_over ? 0 : reads ? 1 : TICK_MS);
        now = drive_now(d);
        look_around(l, now);
        reads = has_left(l, now);
    }
    if (d->conf.cap != NULL) {
        hold(l, now, NULL); /* the next request waits for it */
    }
    count_strays(l, now);
    sender_count_alike(&l->sender);
    receiver_count_alike(&l->receiver);
    reconnect_count_unserved(&l->reconnect);
    for (unsigned i = 0; i < d->set->count; i++) {
        struct lconn *c = &d->set->conns[i];
        struct request_op op;
        bool has_any = false;
        while (sender_forget(&l->sender, c, true, now, &op)) {
            has_any = true;
        }
        if (has_any) {
            lset_down(d->set, c); /* what comes yet would be a reply to nothing */
        }
    }
    if (l->source->ops->end != NULL) {
        l->source->ops->end(l->source, now);
    }
    passed_settle(&d->passed, d->window.end, d->counters->waits);
}

/* ---- beginning and end --------------------------------------------------------------- */

void
event_loop_init(struct event_loop *l, const struct drive_conf *conf, struct lset *set,
                const struct drive_into *into)
{
    struct drive *d = &l->drive;
    *l = (struct event_loop){.is_timed = false};
    drive_init(d, conf, set, into);
    sender_init(&l->sender, d);
    reconnect_init(&l->reconnect, d);
    l->source = d->w->trace_buffer != NULL ? source_replay_create(d, &l->sender)
                : drive_is_open(d)         ? source_open_create(d, &l->sender)
                                           : source_closed_create(d, &l->sender);
    l->sources = l->source;
    if (d->w->conf.defers) {
        l->sources = source_deferred_create(d, &l->sender);
        l->sources->next = l->source;
    }
    receiver_init(&l->receiver, d, &l->sender, l->sources);
}

void
event_loop_fini(struct event_loop *l)
{
    for (struct source *s = l->sources, *next; s != NULL; s = next) {
        next = s->next;
        s->ops->destroy(s);
    }
    l->sources = l->source = NULL;
    reconnect_fini(&l->reconnect);
    sender_fini(&l->sender);
    drive_fini(&l->drive);
}

void
event_loop_run(struct event_loop *l, const struct drive_window *window)
{
    struct drive *d = &l->drive;
    nsec_t now;
    d->window = *window;
    passed_init(&d->passed, window->start);
    l->next_tick = window->begin + TICK;
    l->heard_at = window->begin;
    l->way = (struct give_way){.at = drive_now(d), .cpu = clock_of_thread()};
    if (l->source->ops->begin != NULL) {
        l->source->ops->begin(l->source);
    }
    for (unsigned i = 0; i < d->set->count; i++) {
        reconnect_begin(&l->reconnect, &d->set->conns[i]);
    }
    while ((now = drive_now(d)) < window->begin && !is_stopped(l)) {
        bool is_near = window->begin - now < BEGIN_NEAR;
        if (!is_near) {
            lset_wake_at(d->set, window->begin - BEGIN_NEAR);
        }
        poll_events(l, is_near ? 0 : TICK_MS);
    }
    if (now >= window->begin) {
        fill_all(l, now);
    } else {
        end_at(l, now);
    }
    run_window(l);
    drain(l);
}
