/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_turn.h"

#include "base/owner_of.h"
#include "net/conn_io.h"
#include "net/conn_plain.h"
#include "net/migrate.h"
#include "net/watchers.h"
#include "net/worker.h"
#include "sock/tls.h"

#define INLINE_READS_MAX                                                                 \
    2                /* buffers' worth of input that a turn where it was read takes */
#define READS_MAX 64 /* buffers' worth of input that any turn takes */
#define DRAIN_READS_MAX 64 /* buffers' worth of input that is still taken at the end */

/* How a turn, or a step of it, ended. */
enum step {
    STEP_ON,    /* go on */
    STEP_WAIT,  /* for an event */
    STEP_DEFER, /* queue for a deferred turn */
    STEP_HELD,  /* waits for a token, queued already, or for another thread */
    STEP_CLOSED,
};

/* ---- output --------------------------------------------------------------------------- */

static bool
is_timed(const struct conn *c, const struct turn *turn)
{
    return turn->deadline != TURN_ENDLESS && c->pump.out.bytes >= PACE_PIECE_MIN;
}

static size_t
piece_max(const struct turn *turn)
{
    return turn->is_inline && !turn->is_alone ? PACE_OUT_MAX : PACE_PIECE_MAX;
}

/* Bytes to write at once. */
static size_t
piece_of(const struct conn *c, const struct turn *turn)
{
    bool is_slow = turn->is_alone && c->pump.way == PACE_TLS;
    return is_slow || is_timed(c, turn) ? pump_piece(&c->pump) : piece_max(turn);
}

/* Writes a piece, and learns what that takes if it teaches anything. The clock has just been looked
 * at. */
static enum io
flush_timed(struct conn *c, struct turn *turn)
{
    struct pump *p = &c->pump;
    size_t sent, piece = piece_of(c, turn);
    if (!is_timed(c, turn)) {
        return conn_flush(c, piece, &sent);
    }
    nsec_t begin = p->core->now;
    enum io io = conn_flush(c, piece, &sent);
    turn->has_run = true;
    pace_learn(&p->core->queue.pace, p->way, sent, core_read_clock(p->core) - begin);
    return io;
}

/* Gets rid of waiting output; ON when less than `least` bytes are left. */
static enum step
drain_to(struct conn *c, struct turn *turn, size_t least)
{
    if (is_timed(c, turn)) {
        core_read_clock(c->pump.core);
    }
    while (c->pump.out.bytes >= least) {
        switch (flush_timed(c, turn)) {
        case IO_CLOSED:
            return STEP_CLOSED;
        case IO_AGAIN:
            return STEP_WAIT;
        default:
            break;
        }
        bool goes_on = turn->is_inline ? pump_ends_here(&c->pump, turn)
                                       : pump_fits_another(&c->pump, turn);
        if (c->pump.out.bytes > 0 && !goes_on) {
            return STEP_DEFER;
        }
    }
    return STEP_ON;
}

static enum step
drain_output(struct conn *c, struct turn *turn)
{
    return drain_to(c, turn, 1);
}

/* So much waits that no request is run. In a deferred turn what is less than a piece goes with the
 * replies to the client's next request, if that is here: each write is a system call. */
static enum step
drain_pieces(struct conn *c, struct turn *turn)
{
    if (!turn->is_inline && turn->has_run && !pump_fits_piece(&c->pump, turn)) {
        return STEP_DEFER;
    }
    size_t piece = piece_of(c, turn);
    size_t least = turn->is_inline ? 1 : piece < PACE_OUT_MAX ? piece : PACE_OUT_MAX;
    enum step drained = drain_to(c, turn, least);
    if (drained != STEP_ON) {
        return drained;
    }
    /* Small requests that add up to a piece have had their turn. */
    return turn->is_inline && !pump_ends_here(&c->pump, turn) ? STEP_DEFER : STEP_ON;
}

/* All of it, as far as the socket takes it. */
static enum io
flush_all(struct conn *c)
{
    size_t sent;
    enum io io = IO_OK;
    while (io == IO_OK && c->pump.out.bytes > 0) {
        io = conn_flush(c, PACE_PIECE_MAX, &sent);
    }
    return io;
}

/* ---- steps ---------------------------------------------------------------------------- */

/* Measures where the time of the request goes that is about to be read. */
static void
follow(const struct conn *c, const struct turn *turn, enum session_next next)
{
    struct latency *l = &c->pump.core->latency;
    bool is_first = turn->reads == 1 && !turn->has_run && next == SESSION_MORE;
    bool can_send = c->tls == NULL || c->tls->session->is_agreed;
    if (is_first && can_send && latency_has_room(l, c->pump.core->now)) {
        latency_begin(l, &c->pump, turn->ready_at);
    }
}

/* Its output may stay for now. After a hang-up the end of the stream may be next, and what is held
 * would be lost with it. */
static bool
keeps_output(struct conn *c)
{
    return c->tls == NULL && !c->edge.is_blocked && !c->edge.has_hangup &&
           coalesce_keeps(&c->pump);
}

/* Nothing can run before more bytes arrive. */
static enum step
step_read(struct conn *c, struct turn *turn, enum session_next next)
{
    c->pump.session.follows = false;
    if (c->pump.out.bytes > 0 && !keeps_output(c)) {
        enum step step = drain_output(c, turn);
        if (step != STEP_ON) {
            return step;
        }
    }
    /* What is held will prove the socket alive when it is sent. */
    if (!c->edge.is_readable && (!c->edge.must_probe || c->pump.coalesced.is_held)) {
        return STEP_WAIT;
    }
    if (turn->is_inline && (next == SESSION_WANT || turn->reads == INLINE_READS_MAX)) {
        return STEP_DEFER;
    }
    if (turn->reads == READS_MAX) {
        return STEP_DEFER;
    }
    if (c->pump.core->is_draining) {
        if (c->drain_reads == DRAIN_READS_MAX) {
            return STEP_WAIT; /* what has arrived before the end is served, not what follows */
        }
        c->drain_reads++;
    }
    turn->reads++;
    if (unlikely(--c->worker->rx.reads_to_check == 0)) {
        worker_check_rx(c->worker, c->source.fd);
        follow(c, turn, next);
    }
    enum io io = next == SESSION_WANT ? conn_fill_body(c, turn) : conn_fill(c, turn);
    if (unlikely(io != IO_OK)) {
        if (io == IO_AGAIN) {
            if (!turn->has_run) {
                pump_charge_read(&c->pump);
            }
            return STEP_ON;
        }
        return io == IO_CLOSED ? STEP_CLOSED : io == IO_LATER ? STEP_DEFER : STEP_WAIT;
    }
    /* A turn that has only begun is not over. */
    bool may_be_over = turn->has_run || turn->reads > 1 || next == SESSION_WANT;
    return may_be_over && queue_is_turn_over(c->pump.core, turn) ? STEP_DEFER : STEP_ON;
}

/* The last replies go out before the connection ends. */
static enum step
step_leave(struct conn *c, struct turn *turn)
{
    enum step drained = drain_output(c, turn);
    if (drained != STEP_ON) {
        return drained;
    }
    conn_close(c, c->leaving);
    return STEP_CLOSED;
}

/* The connection leaves the worker when the replies before it are sent. */
static enum step
become_watcher(struct conn *c)
{
    struct worker *w = c->worker;
    struct pump *p = &c->pump;
    c->watcher = watcher_create(w->shared->watchers, p->session.watches, &c->entry);
    if (c->watcher == NULL) {
        watch_leave(p->core->env.watch);
        p->work.ticket.is_admitted = false; /* the next request is another one */
        if (!ascii_put_reply(&p->out, &p->core->env.chain, REPLY_WATCH_FAILED)) {
            conn_close(c, CLOSE_NO_MEMORY);
            return STEP_CLOSED;
        }
        return STEP_ON;
    }
    c->leaving = CLOSE_WATCH;
    return STEP_ON;
}

/* A request is at the head: how far did it come? */
static enum step
step_run(struct conn *c, struct turn *turn)
{
    enum pump_end end = pump_run(&c->pump, turn);
    switch (end) {
    case PUMP_DONE:
    case PUMP_REFUSED:
        c->pump.session.follows |= c->pump.out.bytes > 0;
        return STEP_ON;
    case PUMP_ON:
        return STEP_ON;
    case PUMP_FLUSH:
        return drain_output(c, turn);
    case PUMP_DEFER:
        /* It has had as many as -R says. */
        ctr_add(&c->worker->ctr.conn_yields, c->pump.requests == 0 && !turn->is_short);
        return STEP_DEFER;
    case PUMP_PARKED:
        c->is_parked = true;
        return STEP_HELD;
    case PUMP_WAIT:
        return STEP_HELD;
    case PUMP_WATCH:
        return become_watcher(c);
    case PUMP_QUIT:
        c->leaving = CLOSE_QUIT;
        return STEP_ON;
    case PUMP_CLOSE:
        c->leaving = CLOSE_HOSTILE;
        return STEP_ON;
    case PUMP_OVER:
        if ((c->tls == NULL || c->tls->session->committed == 0) &&
            pump_take_back(&c->pump)) {
            return STEP_ON;
        }
        break;
    case PUMP_ABORT:
        break;
    }
    conn_close(c, end == PUMP_OVER ? CLOSE_BUDGET : CLOSE_NO_MEMORY);
    return STEP_CLOSED;
}

static enum step
step(struct conn *c, struct turn *turn)
{
    if (c->leaving != CLOSE_NONE) {
        return step_leave(c, turn);
    }
    if (c->pump.out.bytes >= PACE_OUT_MAX) {
        enum step drained = drain_pieces(c, turn);
        if (drained != STEP_ON) {
            return drained;
        }
    }
    enum session_next next =
        session_peek(&c->pump.session, &c->pump.core->env, &c->pump.in);
    switch (next) {
    case SESSION_READY:
        return step_run(c, turn);
    case SESSION_MORE:
    case SESSION_WANT:
        return step_read(c, turn, next);
    case SESSION_CLOSE:
        c->leaving = CLOSE_HOSTILE;
        return STEP_ON;
    case SESSION_NO_MEMORY:
        conn_close(c, CLOSE_NO_MEMORY);
        return STEP_CLOSED;
    }
    unreachable();
}

/* Replies of finished requests do not wait for the next one's turn, unless they are large and
 * the time is up; those of a request that goes on are collected into large pieces. */
static enum step
flush_finished(struct conn *c, const struct turn *turn, enum step end)
{
    const struct session *s = &c->pump.session;
    bool is_finished = !s->is_pending || !c->pump.work.ticket.is_admitted || s->is_body ||
                       end == STEP_HELD || turn->is_inline;
    if (c->pump.out.bytes == 0 || c->edge.is_blocked || !is_finished) {
        return end;
    }
    bool is_over = end == STEP_DEFER && !turn->is_inline && !conn_is_leaving_worker(c);
    if (is_over && pump_leaves_output(&c->pump, turn)) {
        return end;
    }
    size_t sent;
    enum io io = end == STEP_HELD ? flush_all(c) /* its turn may be far away */
                                  : conn_flush(c, piece_max(turn), &sent);
    return io == IO_CLOSED ? STEP_CLOSED : end;
}

/* What the connection is at, when it is not in a queue of new requests. */
static enum registry_state
state_of(const struct conn *c)
{
    if (c->leaving != CLOSE_NONE) {
        return REGISTRY_CLOSING;
    }
    if (c->pump.session.is_body) {
        return REGISTRY_BODY;
    }
    if (c->pump.out.bytes > 0) {
        return REGISTRY_WRITE;
    }
    if (c->pump.session.swallow > 0) {
        return REGISTRY_SWALLOW;
    }
    return c->pump.session.is_pending ? REGISTRY_PARSE : REGISTRY_READ;
}

/* The connection waits for the client: give back what it does not need. */
static void
rest(struct conn *c)
{
    conn_set_state(c, state_of(c));
    if (!c->pump.session.is_pending || c->pump.session.is_body) {
        buf_park(&c->pump.in, &c->pump.core->pool);
    }
    session_rest(&c->pump.session, &c->pump.core->env);
    c->is_at_rest = conn_is_at_rest(c);
    if (c->pump.core->is_draining && c->pump.out.bytes == 0) {
        conn_close(c, CLOSE_SHUTDOWN);
    } else if (conn_is_leaving_worker(c)) {
        (void)!migrate_complete(c);
    }
}

/* Its request waits for the next turn: that may be another worker's. */
static void
defer(struct conn *c)
{
    if (conn_is_leaving_worker(c) && migrate_complete(c)) {
        return;
    }
    bool is_new = c->pump.session.is_pending && !c->pump.work.ticket.is_admitted;
    conn_set_state(c, is_new ? REGISTRY_NEW : state_of(c));
    queue_put(c->pump.core, &c->pump.work, pump_lane(&c->pump));
}

/* Step by step. */
static __attribute__((noinline)) void
take_steps(struct conn *c, struct turn *turn)
{
    struct pump *p = &c->pump;
    struct core *k = p->core;
    enum step end;
    must(!c->is_parked);
    c->is_at_rest = false;
    if (conn_is_leaving_worker(c)) {
        turn_shorten(turn); /* it leaves between two */
    }
    k->env.client_fd = c->source.fd;
    k->env.back.message = &c->message.message;
    pump_begin_turn(p, turn);
    unsigned allowed = p->requests;
    conn_set_state(c, REGISTRY_PARSE);
    do {
        end = step(c, turn);
    } while (end == STEP_ON);
    pump_end_turn(p, allowed, end == STEP_WAIT);
    if (end == STEP_DEFER || end == STEP_HELD) {
        end = flush_finished(c, turn, end);
    }
    admission_end_turn(k, turn);
    atomic_store_explicit(&c->entry.last_cmd, k->env.now, memory_order_relaxed);
    switch (end) {
    case STEP_WAIT:
        latency_forget(&k->latency, p);
        rest(c);
        break;
    case STEP_DEFER:
        defer(c);
        break;
    case STEP_HELD:
        conn_set_state(c, REGISTRY_WAITING);
        break;
    default:
        break;
    }
}

/* ---- how turns begin ------------------------------------------------------------------ */

static void
take_turn(struct work *work, struct turn *turn)
{
    struct conn *c = OWNER_OF(work, struct conn, pump.work);
    if (unlikely(turn->is_served)) {
        arrival_resume(&c->pump.arrival, c->pump.core->now);
    }
    bool is_over = c->is_at_rest && conn_is_plain(c, turn) &&
                   (turn->lane == CLASS_BULK ? conn_serve_lines(c, turn)
                                             : conn_serve_plain(c, turn));
    if (!is_over) {
        take_steps(c, turn);
    }
}

static bool
ends_if_gone(struct work *work)
{
    struct conn *c = OWNER_OF(work, struct conn, pump.work);
    bool is_gone = conn_is_reset(c);
    if (is_gone) {
        conn_close(c, CLOSE_RESET);
    }
    return is_gone;
}

static void
describe_peer(const struct work *work, char *to, size_t size)
{
    const struct conn *c = (const struct conn *)(const void *)work;
    addr_put_host(c->entry.addr, to, size);
}

const struct work_type conn_work = {
    .turn = take_turn, .ends_if_gone = ends_if_gone, .describe_peer = describe_peer};

/* Its request waits for a token or another thread; replies to those before it go when there is room. */
static __attribute__((noinline)) void
on_ready_waiting(struct conn *c)
{
    if (conn_is_reset(c)) {
        conn_close(c, CLOSE_RESET);
    } else if (!c->edge.is_blocked) {
        (void)!flush_all(c);
    }
}

static struct turn
inline_turn(const struct worker *w)
{
    struct turn turn = core_inline_turn(&w->core);
    turn.is_alone = poller_had_one(&w->poller);
    return turn;
}

/* Something is under way, it is queued, or the client has closed its side. */
static __attribute__((noinline)) void
on_ready_under_way(struct conn *c, unsigned ready)
{
    struct worker *w = c->worker;
    if (ready & (POLLER_READ | POLLER_HANGUP)) {
        c->edge.is_readable = true;
        c->edge.must_probe = true;
    }
    if (ready & POLLER_HANGUP) {
        c->edge.has_hangup = true;
        c->is_at_rest = false;
    }
    bool was_blocked = c->edge.is_blocked;
    c->pump.arrival.was_blocked |= was_blocked;
    if ((ready & POLLER_WRITE) != 0 ||
        c->tls != NULL) { /* TLS may have to read to write */
        c->edge.is_blocked = false;
    }
    if (waitq_is_waiting(&c->pump.work.ticket.wait) || c->is_parked) {
        on_ready_waiting(c);
        return;
    }
    if (work_is_queued(&c->pump.work) || c->edge.is_blocked) {
        return; /* its turn comes, or output has to go first */
    }
    if (was_blocked && c->pump.out.bytes > 0) {
        /* output that was too much resumes in turns like all such work */
        queue_put(&w->core, &c->pump.work, pump_lane(&c->pump));
        return;
    }
    if (pump_defers_read(&c->pump)) {
        return;
    }
    struct turn turn = inline_turn(w);
    take_steps(c, &turn);
    worker_end_inline(w, &turn);
}

/* What is left of a turn that began with plain requests. It is made anew: as the address of the one it
 * began with is known nowhere else, that is in registers. */
static __attribute__((noinline)) void
go_on(struct conn *c, unsigned reads, unsigned requests, bool has_guest)
{
    struct worker *w = c->worker;
    struct turn turn = inline_turn(w);
    turn.reads = reads;
    turn.has_run = requests < turn.requests;
    turn.requests = requests;
    turn.has_guest = has_guest;
    take_steps(c, &turn);
    worker_end_inline(w, &turn);
}

__attribute__((flatten)) void
conn_on_ready(struct poll_source *source, unsigned ready)
{
    struct conn *c = OWNER_OF(source, struct conn, source);
    struct worker *w = c->worker;
    core_wake(&w->core);
    if (unlikely(!c->is_at_rest || fair_is_queued(&c->pump.work.node) ||
                 (ready & (POLLER_READ | POLLER_HANGUP)) != POLLER_READ)) {
        on_ready_under_way(c, ready);
        return;
    }
    c->edge.is_readable = true;
    c->edge.must_probe = true;
    if (pump_defers_read(&c->pump)) {
        return;
    }
    struct turn turn = inline_turn(w);
    if (likely(conn_is_plain(c, &turn) && conn_serve_plain(c, &turn))) {
        worker_end_inline(w, &turn);
    } else {
        go_on(c, turn.reads, turn.requests, turn.has_guest);
    }
}
