/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/drive.h"

#include <stdlib.h>
#include <time.h>

#include "loadgen/work/streams.h"

#define TICK (50 * NSEC_PER_MSEC) /* between looks for time-outs and lost connections */
#define TICK_MS 50
/* Before the begin of the window: polls, not sleeps. */
#define BEGIN_NEAR (5 * NSEC_PER_MSEC)

static double
cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool
is_measured(const struct drive *d, nsec_t when)
{
    return when >= d->window.start && when < d->window.end;
}

/* ---- connections with room --------------------------------------------------------- */

static void
offer_room(struct drive *d, struct lconn *c)
{
    if (d->has_rooms && !c->in_room && c->todo_count == 0 &&
        lconn_has_room(c, d->conf.depth)) {
        struct drive_room *room = &d->rooms[d->rooms_len > 1 ? c->server : 0];
        must(room->count < d->room_cap);
        room->ring[(room->head + room->count++) % d->room_cap] = c;
        c->in_room = true;
    }
}

/* The connection that has waited longest and may have the next request; NULL when none has
 * room. */
static struct lconn *
take_room(struct drive *d)
{
    struct drive_room *room = &d->rooms[ask_server(&d->ask)];
    while (room->count > 0) {
        struct lconn *c = room->ring[room->head];
        room->head = (room->head + 1) % d->room_cap;
        room->count--;
        c->in_room = false;
        if (c->todo_count == 0 && lconn_has_room(c, d->conf.depth)) {
            return c;
        }
    }
    return NULL;
}

static void
make_dirty(struct drive *d, struct lconn *c)
{
    if (!c->is_dirty) {
        c->is_dirty = true;
        d->dirty[d->dirty_count++] = c;
    }
}

/* ---- losing connections and requests ------------------------------------------------ */

static void
forget_requests(struct drive *d, struct lconn *c, ctr_t *sent, nsec_t now)
{
    struct lconn_op op;
    while (lconn_take_op(c, &op)) {
        if (is_measured(d, op.intended)) {
            nsec_t waited = now > op.intended ? now - op.intended : 0;
            tally_censored(d->tally, op.issued == 0 ? &d->tally->unsent : sent, waited);
        }
    }
}

static void
lose(struct drive *d, struct lconn *c, enum tally_error why, nsec_t now)
{
    ctr_add(&d->tally->errors[why], 1);
    forget_requests(d, c, &d->tally->lost, now);
    lset_lose(d->set, c, now);
}

/* ---- sending ----------------------------------------------------------------------- */

/* Requests that follow from answers go before others. False when some have to wait; at the
 * end of the window they wait for ever. */
static bool
push_todo(struct drive *d, struct lconn *c, nsec_t now)
{
    while (c->todo_count > 0) {
        if (!lconn_has_room(c, d->conf.depth) || now >= d->window.end) {
            return false;
        }
        const struct lconn_op *op = lconn_push_todo(c, d->w);
        if (is_measured(d, op->intended)) {
            ctr_add(&d->tally->offered, 1);
        }
        if (d->has_rooms) {
            make_dirty(d, c);
        }
    }
    return true;
}

static void
count_sent(struct drive *d, struct lconn *c, nsec_t now)
{
    unsigned before = c->count - c->fresh - c->issued;
    for (unsigned i = 0; i < c->issued; i++) {
        struct lconn_op *op = lconn_issued_op(c, i);
        if (op->intended == 0) {
            op->intended = now; /* a closed loop has no other intention */
            ctr_add(&d->tally->offered, is_measured(d, now) ? 1 : 0);
        }
        if (is_measured(d, op->intended)) {
            tally_sent(d->tally, now - op->intended, before + i + 1);
        }
    }
}

static bool
flush(struct drive *d, struct lconn *c)
{
    size_t sent;
    nsec_t now = clock_now();
    bool is_up = lset_flush(d->set, c, now, &sent);
    count_sent(d, c, now);
    if (is_measured(d, now)) {
        ctr_add(&d->tally->tx_bytes, sent);
    }
    if (!is_up) {
        lose(d, c, TALLY_DISCONNECT, now);
        return false;
    }
    return true;
}

static void
flush_dirty(struct drive *d)
{
    for (unsigned i = 0; i < d->dirty_count; i++) {
        struct lconn *c = d->dirty[i];
        c->is_dirty = false;
        if (c->state == LCONN_UP && flush(d, c)) {
            offer_room(d, c); /* a full buffer may have been the limit */
        }
    }
    d->dirty_count = 0;
}

/* Of servers that share the keys, one that cannot be reached must not hold up what others
 * are to be asked: whether the next request is one that nobody will take. */
static bool
is_unreachable(struct drive *d)
{
    unsigned server = ask_server(&d->ask);
    for (unsigned i = 0; d->rooms_len > 1 && i < d->set->count; i++) {
        const struct lconn *c = &d->set->conns[i];
        if (c->server == server && c->state == LCONN_UP) {
            return false;
        }
    }
    return d->rooms_len > 1;
}

/* Closed loop over servers that share the keys: requests go to whom they belong, until one of
 * these has no room. */
static void
hand_out(struct drive *d, nsec_t now)
{
    struct lconn *c;
    unsigned dropped = 0;
    while (now < d->window.end && dropped < d->set->count) {
        if ((c = take_room(d)) != NULL) {
            ask_push(&d->ask, c, 0);
            make_dirty(d, c);
            offer_room(d, c);
        } else if (is_unreachable(d)) {
            ask_drop(&d->ask);
            dropped++;
        } else {
            return;
        }
    }
}

/* Closed loop: fills the connection up to its depth. */
static void
refill(struct drive *d, struct lconn *c, nsec_t now)
{
    if (d->has_rooms) {
        push_todo(d, c, now);
        offer_room(d, c);
        hand_out(d, now);
        return;
    }
    while (c->state == LCONN_UP && now < d->window.end &&
           lconn_has_room(c, d->conf.depth)) {
        while (push_todo(d, c, now) && lconn_has_room(c, d->conf.depth)) {
            ask_push(&d->ask, c, 0);
        }
        if (!flush(d, c)) {
            return;
        }
    }
}

static void
next_arrival(struct drive *d)
{
    if (is_measured(d, d->next)) {
        ctr_add(&d->tally->offered, 1);
    }
    d->next = arrival_next(&d->arrival);
}

/* The next request is not sent. */
static void
pass_over(struct drive *d, ctr_t *why)
{
    if (is_measured(d, d->next)) {
        tally_censored(d->tally, why, d->window.end - d->next);
    }
    ask_drop(&d->ask);
    next_arrival(d);
}

/* Requests may have been passed over since the connection was chosen. */
static bool
is_for(struct drive *d, const struct lconn *c)
{
    return d->rooms_len == 1 || ask_server(&d->ask) == c->server;
}

/* A part of a request that is not its last is one more that is offered. */
static void
give(struct drive *d, struct lconn *c)
{
    if (ask_push(&d->ask, c, d->next)) {
        next_arrival(d);
    } else if (is_measured(d, d->next)) {
        ctr_add(&d->tally->offered, 1);
    }
    make_dirty(d, c);
}

/* Open loop: hands out the requests that are due. One that finds no room stays the next
 * one, with its time; those behind it are drawn later, with theirs. */
static void
send_due(struct drive *d, nsec_t now)
{
    struct lconn *c;
    while (d->next <= now && d->next < d->window.end) {
        if ((c = take_room(d)) == NULL) {
            if (!is_unreachable(d)) {
                return;
            }
            pass_over(d, &d->tally->unsent);
            continue;
        }
        while (d->conf.drops_late && d->next + DRIVE_DROP_AFTER < now) {
            pass_over(d, &d->tally->skipped);
        }
        if (d->next <= now && d->next < d->window.end && is_for(d, c)) {
            give(d, c);
        }
        offer_room(d, c);
    }
}

/* ---- receiving --------------------------------------------------------------------- */

static void
count_good(struct drive *d, const struct lconn *c, const struct lconn_done *done,
           nsec_t now)
{
    bool reads = done->op.verb == CODEC_GET || done->op.verb == CODEC_GETS;
    enum tally_verb verb = reads ? TALLY_READ : TALLY_UPDATE;
    if (is_measured(d, now)) {
        ctr_add(&d->tally->done[verb], 1);
        ctr_add(&d->tally->ops[done->op.verb], 1);
        ctr_add(&d->tally->no_effect[done->op.verb], done->has_effect ? 0 : 1);
        if (verb == TALLY_READ) {
            ctr_add(&d->tally->keys, done->op.keys);
            ctr_add(&d->tally->hits, done->hits);
        }
    }
    if (is_measured(d, done->op.intended)) {
        tally_good(d->tally, verb, now - done->op.intended, now - done->op.issued);
        evenness_log_record(d->evenness, (unsigned)(c - d->set->conns),
                            now - done->op.issued);
    }
}

static enum tally_error
error_of(const struct lconn_done *done)
{
    if (done->outcome == LCONN_UNEXPECTED) {
        return TALLY_UNEXPECTED;
    }
    if (done->outcome == LCONN_WRONG) {
        return TALLY_WRONG;
    }
    return done->kind == CLIENT_ERROR          ? TALLY_ERROR
           : done->kind == CLIENT_CLIENT_ERROR ? TALLY_CLIENT_ERROR
                                               : TALLY_SERVER_ERROR;
}

static void
reconnect(struct drive *d, struct lconn *c, nsec_t now)
{
    if (!lset_reconnect(d->set, c, now)) {
        ctr_add(&d->tally->errors[TALLY_CONNECT], 1);
    }
}

/* A UNIX socket is up at once and no event says so: it gets its requests here. */
static void
revive(struct drive *d, struct lconn *c, nsec_t now)
{
    reconnect(d, c, now);
    offer_room(d, c);
    if (!d->conf.is_open) {
        refill(d, c, now);
    }
}

/* The server has said that it closes: not an error. What was sent behind is lost. */
static void
replace(struct drive *d, struct lconn *c, nsec_t now)
{
    forget_requests(d, c, &d->tally->lost, now);
    lset_down(d->set, c);
    revive(d, c, now);
}

/* False when the connection is gone. */
static bool
receive(struct drive *d, struct lconn *c)
{
    struct lset_bytes in;
    enum lset_input input = lset_receive(d->set, c, &in);
    nsec_t now = clock_now();
    if (input != LSET_DATA) {
        if (input == LSET_LOST) {
            lose(d, c, TALLY_DISCONNECT, now);
        }
        return input == LSET_NOTHING;
    }
    if (is_measured(d, now)) {
        ctr_add(&d->tally->rx_bytes, in.len);
    }
    c->backoff = 0; /* it serves again */
    c->read_at = now;
    struct lconn_done done;
    for (size_t at = 0;; at += done.taken) {
        lconn_parse(c, d->w, in.p + at, in.len - at, &done);
        switch (done.outcome) {
        case LCONN_MORE:
            return true;
        case LCONN_BROKEN:
            lose(d, c, TALLY_DESYNC, now);
            return false;
        case LCONN_GOOD:
            ctr_add(&d->tally->answered, 1);
            count_good(d, c, &done, now);
            break;
        case LCONN_BAD:
        case LCONN_UNEXPECTED:
        case LCONN_WRONG:
            ctr_add(&d->tally->errors[error_of(&done)], 1);
            break;
        }
        if (unlikely(done.is_last)) {
            replace(d, c, now);
            return false;
        }
    }
}

static void
on_event(struct drive *d, struct lconn *c, unsigned can)
{
    nsec_t now = 0;
    if (c->state == LCONN_DOWN) {
        return; /* lost earlier in this batch */
    }
    if (c->state == LCONN_CONNECTING) {
        now = clock_now();
        reconnect(d, c, now);
    } else if ((can & LSET_CAN_RECEIVE) != 0 && !receive(d, c)) {
        return;
    }
    if ((can & LSET_CAN_SEND) != 0 && c->state == LCONN_UP && !flush(d, c)) {
        return;
    }
    if (d->conf.is_open) {
        if (c->todo_count > 0) {
            push_todo(d, c, clock_now());
        }
        offer_room(d, c);
    } else {
        refill(d, c, clock_now());
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
tick(struct drive *d, nsec_t now)
{
    d->next_tick = now + TICK;
    for (unsigned i = 0; i < d->set->count; i++) {
        struct lconn *c = &d->set->conns[i];
        const struct lconn_op *oldest = lconn_oldest(c);
        nsec_t since = oldest != NULL && oldest->issued != 0 ? oldest->issued : now;
        since = c->blocked_at != 0 && c->blocked_at < since ? c->blocked_at : since;
        if (since + d->conf.timeout < now) {
            lose(d, c, TALLY_TIMEOUT, now);
        } else if (c->state == LCONN_CONNECTING && c->retry_at <= now) {
            lose(d, c, TALLY_CONNECT, now);
        } else if (c->state == LCONN_DOWN && c->retry_at <= now && now < d->window.end) {
            revive(d, c, now);
        }
    }
}

static void
start_timing(struct drive *d, nsec_t now)
{
    d->is_timed = true;
    d->timed_from = now;
    d->idle = 0;
    d->cpu_from = cpu_seconds();
}

static void
stop_timing(struct drive *d, nsec_t now)
{
    if (!d->is_timed) {
        return;
    }
    d->cost.elapsed_s = (double)(now - d->timed_from) / 1e9;
    d->cost.cpu_s = cpu_seconds() - d->cpu_from;
    d->cost.idle_s = (double)d->idle / 1e9;
}

/* When there is something to do without an event from a connection. */
static nsec_t
next_duty(struct drive *d, nsec_t now)
{
    nsec_t duty = now < d->window.start ? d->window.start : d->window.end;
    if (d->conf.is_open && d->next < duty &&
        (d->rooms[ask_server(&d->ask)].count > 0 || is_unreachable(d))) {
        duty = d->next;
    }
    return duty;
}

/* Sleeps until shortly before the next duty, polls from then on. */
static unsigned
wait_for_duty(struct drive *d, nsec_t now)
{
    nsec_t duty = next_duty(d, now);
    if (duty <= now + d->conf.spin) {
        return poll_events(d, 0);
    }
    lset_wake_at(d->set, duty - d->conf.spin);
    return poll_events(d, TICK_MS);
}

static void
run_window(struct drive *d)
{
    nsec_t now = clock_now();
    while (now < d->window.end) {
        if (!d->is_timed && now >= d->window.start) {
            start_timing(d, now);
        }
        if (atomic_load_explicit(d->conf.stop, memory_order_relaxed)) {
            d->window.end = now > d->window.start ? now : d->window.start;
        }
        if (d->conf.is_open) {
            send_due(d, now);
        }
        bool is_idle = d->dirty_count == 0;
        flush_dirty(d);
        is_idle = wait_for_duty(d, now) == 0 && is_idle;
        nsec_t before = now;
        now = clock_now();
        if (is_idle && next_duty(d, before) <= before + d->conf.spin) {
            d->idle += now - before;
        }
        if (now >= d->next_tick) {
            tick(d, now);
        }
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
    flush_dirty(d); /* what followed from the last answers */
    while (now < give_up && count_outstanding(d) > 0) {
        lset_wake_at(d->set, give_up);
        poll_events(d, TICK_MS);
        now = clock_now();
        if (now >= d->next_tick) {
            tick(d, now);
        }
    }
    for (unsigned i = 0; i < d->set->count; i++) {
        struct lconn *c = &d->set->conns[i];
        if (c->count > 0) {
            forget_requests(d, c, &d->tally->unanswered, now);
            lset_down(d->set, c); /* what comes yet would be a reply to nothing */
        }
    }
    while (d->conf.is_open && d->next < d->window.end) {
        if (is_measured(d, d->next)) {
            tally_censored(d->tally, &d->tally->unsent, now - d->next);
        }
        next_arrival(d);
    }
}

/* The schedule is made before it is known when it starts: times count from 0. */
static struct arrival_conf
arrivals_of(const struct drive_conf *conf, unsigned conns)
{
    struct arrival_conf a = {
        .law = conf->arrivals,
        .rate = conf->rate / conf->threads,
        .seed = conf->seed,
        .stream =
            stream_of(conf->agent, conf->first_thread + conf->thread, STREAM_ARRIVALS),
        .sources = 1,
        .every = 1,
    };
    if (conf->scope == DRIVE_CONN && conf->is_open && !arrival_adds_up(a.law)) {
        a.sources = conns;
    } else if (conf->scope == DRIVE_TOTAL && conf->is_open && !arrival_adds_up(a.law)) {
        a.rate = conf->rate;
        a.stream = stream_of(conf->agent, conf->first_thread, STREAM_ARRIVALS);
        a.every = conf->threads;
        a.first = conf->thread;
    }
    return a;
}

static bool
init_rooms(struct drive *d)
{
    const struct lset_conf *conf = &d->set->conf;
    d->has_rooms = d->conf.is_open || conf->shard != NULL;
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
           struct tally *tally, struct evenness_log *evenness)
{
    *d = (struct drive){
        .conf = *conf,
        .set = set,
        .w = set->conf.workload,
        .tally = tally,
        .evenness = evenness,
    };
    for (unsigned i = 0; i < set->count; i++) {
        set->conns[i].in_room = set->conns[i].is_dirty = false;
    }
    struct arrival_conf arrivals = arrivals_of(conf, set->count);
    d->dirty = calloc(set->count, sizeof(struct lconn *));
    struct ask_conf ask = {
        .workload = d->w,
        .seed = conf->seed,
        .stream =
            stream_of(conf->agent, conf->first_thread + conf->thread, STREAM_REQUESTS),
        .thread = conf->part,
        .threads = conf->parts,
        .shard = set->conf.shard,
    };
    if (!ask_init(&d->ask, &ask) || !init_rooms(d) || d->dirty == NULL ||
        (conf->is_open && !arrival_init(&d->arrival, &arrivals))) {
        drive_fini(d);
        return false;
    }
    return true;
}

void
drive_fini(struct drive *d)
{
    arrival_fini(&d->arrival);
    for (unsigned i = 0; d->rooms != NULL && i < d->rooms_len; i++) {
        free(d->rooms[i].ring);
    }
    free(d->rooms);
    free(d->dirty);
    ask_fini(&d->ask);
    d->rooms = NULL;
    d->dirty = NULL;
}

void
drive_run(struct drive *d, const struct drive_window *window)
{
    d->window = *window;
    d->next_tick = window->begin + TICK;
    if (d->conf.is_open) {
        d->arrival.conf.start = window->begin;
        d->next = arrival_next(&d->arrival);
    }
    for (nsec_t now; (now = clock_now()) < window->begin;) {
        bool is_near = window->begin - now < BEGIN_NEAR;
        if (!is_near) {
            lset_wake_at(d->set, window->begin - BEGIN_NEAR);
        }
        poll_events(d, is_near ? 0 : TICK_MS);
    }
    for (unsigned i = 0; i < d->set->count; i++) {
        struct lconn *c = &d->set->conns[i];
        offer_room(d, c);
        if (!d->conf.is_open) {
            refill(d, c, clock_now());
        }
    }
    run_window(d);
    drain(d);
}
