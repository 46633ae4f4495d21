/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/probe.h"
#include "net/admit.h"
#include "net/conn_class.h"
#include "net/conn_io.h"
#include "net/conn_tls.h"
#include "net/watchers.h"
#include "net/worker.h"

#define INLINE_READS_MAX                                                                 \
    2                /* buffers' worth of input that a turn where it was read takes */
#define READS_MAX 64 /* buffers' worth of input that any turn takes */
#define DRAIN_READS_MAX 64 /* buffers' worth of input that is still taken at the end */
#define KEYS_PER_RUN 16    /* looked up between two looks at the clock */
#define REQUESTS_TIMED 8   /* small ones, likewise */

static void
set_state(struct conn *c, enum registry_state state)
{
    atomic_store_explicit(&c->entry.state, state, memory_order_relaxed);
}

/* How a turn, or a step of it, ended. */
enum step {
    STEP_ON,     /* go on */
    STEP_NEXT,   /* with the next request: this one is answered */
    STEP_WAIT,   /* for an event */
    STEP_DEFER,  /* queue for a deferred turn */
    STEP_QUEUED, /* waits for a token, queued already */
    STEP_CLOSED,
};

/* ---- output --------------------------------------------------------------------------- */

static enum pace_way
way_of(const struct conn *c)
{
    return c->tls != NULL ? PACE_TLS : PACE_PLAIN;
}

static size_t
piece_of(const struct conn *c)
{
    const struct worker *w = c->worker;
    return pace_piece(&w->pace, way_of(c), pace_turn_ns(&w->pace, w->now));
}

/* Will the turn's time do for the next piece of output? */
static bool
fits_piece(const struct conn *c, const struct turn *turn)
{
    struct worker *w = c->worker;
    if (turn->deadline == TURN_ENDLESS) {
        return true;
    }
    size_t piece = piece_of(c);
    size_t bytes = c->out.bytes < piece ? c->out.bytes : piece;
    nsec_t now = worker_read_clock(w);
    return now + pace_write_ns(&w->pace, way_of(c), bytes) < turn->deadline;
}

/* Writes a piece, and learns what that takes if it teaches anything. */
static enum io
flush_timed(struct conn *c, struct turn *turn)
{
    struct worker *w = c->worker;
    size_t sent;
    if (turn->deadline == TURN_ENDLESS || c->out.bytes < PACE_PIECE_MIN) {
        return conn_flush(c, PACE_PIECE_MAX, &sent);
    }
    nsec_t begin = worker_read_clock(w);
    enum io io = conn_flush(c, piece_of(c), &sent);
    turn->has_run = true;
    pace_learn(&w->pace, way_of(c), sent, worker_read_clock(w) - begin);
    return io;
}

/* Gets rid of waiting output; ON when none is left. */
static enum step
drain_output(struct conn *c, struct turn *turn)
{
    while (c->out.bytes > 0) {
        switch (flush_timed(c, turn)) {
        case IO_CLOSED:
            return STEP_CLOSED;
        case IO_AGAIN:
            return STEP_WAIT;
        default:
            break;
        }
        if (c->out.bytes > 0 && (turn->is_inline || !fits_piece(c, turn))) {
            return STEP_DEFER;
        }
    }
    return STEP_ON;
}

/* A whole piece is waiting, or more. */
static enum step
drain_pieces(struct conn *c, struct turn *turn)
{
    if (!turn->is_inline && turn->has_run && !fits_piece(c, turn)) {
        return STEP_DEFER;
    }
    enum step drained = drain_output(c, turn);
    if (drained != STEP_ON) {
        return drained;
    }
    /* Small requests that add up to a piece have had their turn. */
    return turn->is_inline ? STEP_DEFER : STEP_ON;
}

/* ---- steps ---------------------------------------------------------------------------- */

/* Measures where the time of the request goes that is about to be read. */
static void
follow(const struct conn *c, const struct turn *turn, enum session_next next)
{
    struct latency *l = &c->worker->latency;
    bool is_first = turn->reads == 1 && !turn->has_run && next == SESSION_MORE;
    bool can_send = c->tls == NULL || tls_is_agreed(c->tls->session);
    if (is_first && can_send && l->who == NULL) {
        latency_begin(l, c, turn->ready_at);
    }
}

/* The input has ended, and not with a request: that may be one read of many for a single one. */
static void
charge_read(struct conn *c)
{
    struct worker *w = c->worker;
    uint64_t came = session_progress(&c->session, &c->in);
    ctr_add(&w->qos.trickled, habit_charge(&c->habit, &w->peers, c->peer.key, came,
                                           c->rate.served, w->now));
}

/* Nothing can run before more bytes arrive. */
static enum step
step_read(struct conn *c, struct turn *turn, enum session_next next)
{
    if (c->out.bytes > 0 && !hold_keeps(c)) {
        enum step step = drain_output(c, turn);
        if (step != STEP_ON) {
            return step;
        }
    }
    /* What is held will prove the socket alive when it is sent. */
    if (!c->edge.is_readable && (!c->edge.must_probe || c->hold.is_held)) {
        return STEP_WAIT;
    }
    if (turn->is_inline && (next == SESSION_WANT || turn->reads == INLINE_READS_MAX)) {
        return STEP_DEFER;
    }
    if (turn->reads == READS_MAX) {
        return STEP_DEFER;
    }
    if (c->worker->is_draining && c->drain_reads++ >= DRAIN_READS_MAX) {
        return STEP_WAIT; /* what has arrived before the end is served, not what follows */
    }
    turn->reads++;
    if (unlikely(--c->worker->reads_to_check == 0)) {
        worker_check_rx(c->worker, c->fd);
        follow(c, turn, next);
    }
    enum io io = next == SESSION_WANT ? conn_fill_body(c, turn) : conn_fill(c, turn);
    if (unlikely(io != IO_OK)) {
        if (io == IO_AGAIN) {
            if (!turn->has_run) {
                charge_read(c);
            }
            return STEP_ON;
        }
        return io == IO_CLOSED ? STEP_CLOSED : io == IO_LATER ? STEP_DEFER : STEP_WAIT;
    }
    /* A turn that has only begun is not over. */
    bool may_be_over = turn->has_run || turn->reads > 1 || next == SESSION_WANT;
    return may_be_over && worker_is_turn_over(c->worker, turn) ? STEP_DEFER : STEP_ON;
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
    c->watcher = watcher_create(w->shared->watchers, c->session.watches, &c->entry);
    if (c->watcher == NULL) {
        watch_leave(w->env.watch);
        if (!ascii_put_reply(&c->out, &w->env.chain, REPLY_WATCH_FAILED)) {
            conn_close(c, CLOSE_NO_MEMORY);
            return STEP_CLOSED;
        }
        return STEP_ON;
    }
    c->leaving = CLOSE_WATCH;
    return STEP_ON;
}

/* The request goes on, or the connection ends with it. */
static enum step
after_part(struct conn *c, struct turn *turn, enum session_ran ran)
{
    switch (ran) {
    case RAN_AGAIN:
        return worker_ends_piece(c->worker, turn) ? STEP_DEFER : STEP_ON;
    case RAN_LONG:
        return worker_admits_long(c->worker, turn) ? STEP_ON : STEP_DEFER;
    case RAN_LATE:
        c->habit.class = CLASS_BULK;
        return STEP_DEFER;
    case RAN_BODY:
        set_state(c, REGISTRY_BODY);
        return STEP_ON;
    case RAN_WATCH:
        return become_watcher(c);
    case RAN_QUIT:
        c->leaving = CLOSE_QUIT;
        return STEP_ON;
    case RAN_CLOSE:
        c->leaving = CLOSE_HOSTILE;
        return STEP_ON;
    case RAN_NO_MEMORY:
        conn_close(c, CLOSE_NO_MEMORY);
        return STEP_CLOSED;
    default:
        unreachable();
    }
}

static enum step
after_run(struct conn *c, struct turn *turn, enum session_ran ran)
{
    if (unlikely(ran != RAN_DONE)) {
        return after_part(c, turn, ran);
    }
    c->task.is_admitted = c->session.is_open; /* the line goes on: still one request */
    turn->requests -= !c->task.is_admitted;
    return STEP_ON;
}

static struct limiter_request
request_of(const struct conn *c, enum req_class class)
{
    return admit_request(&c->session, class, c->peer.key, c->arrived_at);
}

/* The gets that came with one that the SLO has refused, and have waited as long. */
static void
refuse_rest(struct conn *c, enum req_class class, bool as_miss)
{
    struct worker *w = c->worker;
    const struct net_shared *shared = w->shared;
    bool is_alike = class == CLASS_SMALL && shared->class_rules.key_count == 0 &&
                    w->budget.bytes == 0;
    if (!is_alike) {
        return;
    }
    uint32_t keys = c->session.declared == 0 ? shared->classes.bulk_keys : UINT32_MAX;
    unsigned n =
        session_refuse_gets(&c->session, &w->env, &c->in, &c->out, keys, as_miss);
    slo_refuse(&w->slo, class, n);
    while (n-- > 0) {
        PROBE(qos__shed, c->fd, class);
    }
}

/* Answers the request at the head without running it. */
static enum step
refuse_request(struct conn *c, struct turn *turn, enum req_class class)
{
    struct worker *w = c->worker;
    struct admit_owner owner = {c, c->fd, &c->session, &c->in, &c->out};
    size_t before = c->out.bytes;
    enum step step = after_run(c, turn, admit_refuse(w, &owner, turn, class));
    if (step != STEP_ON) {
        return step;
    }
    if (worker_refuses_rest(w)) {
        refuse_rest(c, class, limiter_refuses_as_miss(&w->shared->limiter));
        hold_note(c, before, class);
    }
    return STEP_NEXT;
}

/* A new request is at the head: is it this connection's turn, and is there a token? */
static enum step
admit(struct conn *c, struct turn *turn, enum req_class class)
{
    struct worker *w = c->worker;
    if (turn->requests == 0) {
        ctr_add(&w->ctr.conn_yields, c->wish.is_set ? 0 : 1);
        return STEP_DEFER;
    }
    /* Under a budget of replies -R alone tells how many a client may stack up, as upstream
     * has it: a turn that ends by time would send some and make room for more. */
    bool is_timed = turn->has_run && turn->requests % REQUESTS_TIMED == 0 &&
                    likely(w->budget.bytes == 0);
    if (is_timed && (worker_is_turn_over(w, turn) || !fits_piece(c, turn))) {
        return STEP_DEFER; /* the worker's time is up, not this connection's number */
    }
    if (class_is_limited(class) &&
        (turn->spare.left == 0 || !worker_follow(w, &turn->spare, class))) {
        struct limiter_request asked = request_of(c, class);
        enum limiter_verdict verdict = limited_ask(w, &c->task, &asked, turn->is_served);
        if (unlikely(verdict != VERDICT_ADMIT)) {
            if (verdict == VERDICT_WAIT) {
                PROBE(limiter__wait, c->fd, class);
                return STEP_QUEUED;
            }
            return refuse_request(c, turn, class);
        }
        if (turn->has_run) { /* a lone request has nobody behind it */
            turn->spare = worker_spare(w);
        }
        /* In a turn that is for small ones: behind others it would learn what those take. */
        if (unlikely(!w->slo.is_neutral) && class == CLASS_SMALL &&
            turn->lane == CLASS_SMALL && turn->admitted_at == 0 &&
            slo_is_on(&w->shared->slo)) {
            turn->admitted_at = w->now;
        }
    }
    c->task.is_admitted = true;
    return STEP_ON;
}

/* The replies that wait exceed their budget. A get whose reply is still here in whole is
 * answered with an error instead; otherwise the connection ends. */
static enum step
give_up(struct conn *c)
{
    struct worker *w = c->worker;
    struct session *s = &c->session;
    if (s->req.family != FAMILY_RETRIEVE || s->req.protocol == PROTOCOL_BINARY ||
        s->error != REPLY_NONE || c->out.bytes != c->share.produced ||
        (c->tls != NULL && tls_is_committed(c->tls->session))) {
        conn_close(c, CLOSE_NO_MEMORY);
        return STEP_CLOSED;
    }
    chain_clear(&c->out, &w->env.chain);
    budget_release(&w->budget, &c->share);
    session_abandon(s, &w->env, &c->in);
    c->task.is_admitted = false;
    if (!ascii_put_reply(&c->out, &w->env.chain, REPLY_NO_MEMORY_WRITING)) {
        conn_close(c, CLOSE_NO_MEMORY);
        return STEP_CLOSED;
    }
    return STEP_ON;
}

/* As session_run, under a budget. */
static enum step
run_in_budget(struct conn *c, struct turn *turn, const struct session_limits *limits)
{
    struct worker *w = c->worker;
    struct session *s = &c->session;
    uint32_t keys = s->req.keys;
    size_t bytes = c->out.bytes;
    bool is_retrieval = s->req.family == FAMILY_RETRIEVE && s->error == REPLY_NONE;
    enum session_ran ran = session_run(s, &w->env, &c->in, &c->out, limits);
    uint32_t replies = is_retrieval ? keys - s->req.keys : ran == RAN_DONE;
    conn_account(c, ran, c->out.bytes - bytes);
    bool is_good =
        budget_charge(&w->budget, &c->share, &w->pool, replies, c->out.bytes - bytes);
    if (!is_good && (ran == RAN_DONE || ran == RAN_AGAIN || ran == RAN_LATE)) {
        return give_up(c);
    }
    return after_run(c, turn, ran);
}

static enum step
run(struct conn *c, struct turn *turn, const struct session_limits *limits)
{
    struct worker *w = c->worker;
    if (unlikely(w->budget.bytes != 0)) {
        return run_in_budget(c, turn, limits);
    }
    size_t bytes = c->out.bytes;
    PROBE(process__command__start, c->fd, buf_unread(&c->in), c->session.line_len);
    enum session_ran ran = session_run(&c->session, &w->env, &c->in, &c->out, limits);
    PROBE(process__command__end, c->fd, 0, c->out.bytes);
    conn_account(c, ran, c->out.bytes - bytes);
    return after_run(c, turn, ran);
}

/* The line is longer than the buffer: it was admitted with the keys that were seen then. */
static enum step
run_more_keys(struct conn *c, struct turn *turn, const struct session_limits *limits,
              enum req_class class)
{
    struct limiter_request more = request_of(c, class);
    enum step step = run(c, turn, limits);
    if (step != STEP_CLOSED && more.keys > c->session.req.keys) {
        more.keys -= c->session.req.keys;
        limiter_owe(&c->worker->limited.desk, &more, c->worker->now);
    }
    return step;
}

/* A request is at the head: may it run here and now? */
static enum step
step_run(struct conn *c, struct turn *turn)
{
    struct worker *w = c->worker;
    enum req_class class =
        c->task.is_admitted ? (enum req_class)c->habit.class : conn_classify(c);
    if (!c->task.is_admitted) {
        enum step admitted = admit(c, turn, class);
        if (admitted != STEP_ON) {
            return admitted == STEP_NEXT ? STEP_ON : admitted;
        }
        budget_begin(&c->share);
        if (unlikely(w->budget.bytes != 0) && c->session.req.family == FAMILY_RETRIEVE) {
            /* So that its reply is alone there, should it have to be taken back. */
            enum step drained = drain_output(c, turn);
            if (drained != STEP_ON) {
                return drained;
            }
        }
    } else {
        turn->has_long |= c->session.is_long;
    }
    if (unlikely(class > turn->lane) && conn_lane(c) > turn->lane) {
        return STEP_DEFER;
    }
    bool may_be_late = class_is_inline(turn->lane) && !c->is_class_told;
    turn->has_run = true;
    set_state(c, REGISTRY_PARSE);
    struct session_limits limits = {.keys = KEYS_PER_RUN,
                                    .out_bytes = PACE_PIECE_MAX,
                                    .late_bytes =
                                        may_be_late ? w->shared->classes.late_bytes : 0};
    if (unlikely(c->session.is_open)) {
        return run_more_keys(c, turn, &limits, class);
    }
    return run(c, turn, &limits);
}

static enum step
step(struct conn *c, struct turn *turn)
{
    if (c->leaving != CLOSE_NONE) {
        return step_leave(c, turn);
    }
    if (c->out.bytes >= PACE_PIECE_MAX) {
        enum step drained = drain_pieces(c, turn);
        if (drained != STEP_ON) {
            return drained;
        }
    }
    enum session_next next = session_peek(&c->session, &c->worker->env, &c->in);
    switch (next) {
    case SESSION_READY:
        return step_run(c, turn);
    case SESSION_MORE:
    case SESSION_WANT:
        return step_read(c, turn, next);
    case SESSION_CLOSE:
        c->leaving = CLOSE_HOSTILE;
        return STEP_ON;
    }
    unreachable();
}

/* Replies of finished requests do not wait for the next one's turn, unless they are large and
 * the time is up; those of a request that goes on are collected into large pieces. */
static enum step
flush_finished(struct conn *c, const struct turn *turn, enum step end)
{
    bool is_finished = !c->session.is_pending || !c->task.is_admitted ||
                       c->session.is_body || end == STEP_QUEUED || turn->is_inline;
    if (c->out.bytes == 0 || c->edge.is_blocked || !is_finished) {
        return end;
    }
    bool is_over = end == STEP_DEFER && !turn->is_inline && !c->wish.is_set;
    if (is_over && pace_leaves(turn->lane, c->out.bytes) && !fits_piece(c, turn)) {
        return end;
    }
    size_t sent;
    enum io io = conn_flush(c, PACE_PIECE_MAX, &sent);
    if (io == IO_CLOSED) {
        return STEP_CLOSED;
    }
    return end;
}

/* What the connection is at, when it is not in a queue of new requests. */
static enum registry_state
state_of(const struct conn *c)
{
    if (c->leaving != CLOSE_NONE) {
        return REGISTRY_CLOSING;
    }
    if (c->session.is_body) {
        return REGISTRY_BODY;
    }
    if (c->out.bytes > 0) {
        return REGISTRY_WRITE;
    }
    if (c->session.swallow > 0) {
        return REGISTRY_SWALLOW;
    }
    return c->session.is_pending ? REGISTRY_PARSE : REGISTRY_READ;
}

/* The connection waits for the client: give back what it does not need. */
static void
rest(struct conn *c)
{
    set_state(c, state_of(c));
    if (!c->session.is_pending || c->session.is_body) {
        buf_park(&c->in, &c->worker->pool);
    }
    if (c->worker->is_draining && c->out.bytes == 0) {
        conn_close(c, CLOSE_SHUTDOWN);
    } else if (unlikely(c->wish.is_set)) {
        (void)!migrate_fulfil(c);
    }
}

/* Its request waits for the next turn: that may be another worker's. */
static void
defer(struct conn *c)
{
    if (unlikely(c->wish.is_set) && migrate_fulfil(c)) {
        return;
    }
    set_state(c,
              c->session.is_pending && !c->task.is_admitted ? REGISTRY_NEW : state_of(c));
    worker_defer(c->worker, &c->task, conn_lane(c));
}

void
conn_turn(struct conn *c, struct turn *turn)
{
    enum step end;
    if (unlikely(c->wish.is_set)) {
        turn->requests = 1; /* it leaves between two */
    }
    unsigned allowed = turn->requests;
    c->worker->env.client_fd = c->fd;
    do {
        end = step(c, turn);
    } while (end == STEP_ON);
    c->rate.served += allowed - turn->requests;
    habit_end_turn(&c->habit, allowed - turn->requests, end == STEP_WAIT);
    if (end == STEP_DEFER || end == STEP_QUEUED) {
        end = flush_finished(c, turn, end);
    }
    if (unlikely(turn->admitted_at != 0)) {
        slo_learn(&c->worker->slo, CLASS_SMALL,
                  worker_read_clock(c->worker) - turn->admitted_at);
    }
    atomic_store_explicit(&c->entry.last_cmd, c->worker->env.now, memory_order_relaxed);
    switch (end) {
    case STEP_WAIT:
        latency_forget(&c->worker->latency, c);
        rest(c);
        break;
    case STEP_DEFER:
        defer(c);
        break;
    case STEP_QUEUED:
        set_state(c, REGISTRY_WAITING);
        break;
    default:
        break;
    }
}
