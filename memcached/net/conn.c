/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/probe.h"
#include "net/conn_class.h"
#include "net/conn_tls.h"
#include "net/stamp.h"
#include "net/watchers.h"
#include "net/worker.h"
#include "qos/class.h"

/* Output is written in pieces of this size, and nothing new is started for a connection that
 * has a whole piece waiting. Smaller pieces cost the bulk class bandwidth, a system call
 * each; larger ones cost everybody else latency. */
#define OUT_PIECE_BYTES 131072
#define OUT_RUNS_MAX 64        /* runs in one sendmsg */
#define BODY_PIECE_BYTES 65536 /* received into an item at once */
#define INLINE_READS_MAX                                                                 \
    2                /* buffers' worth of input that a turn where it was read takes */
#define READS_MAX 64 /* buffers' worth of input that any turn takes */
#define DRAIN_READS_MAX 64 /* buffers' worth of input that is still taken at the end */
#define KEYS_PER_RUN 16    /* looked up between two looks at the clock */
#define REQUESTS_TIMED 4   /* small ones, likewise */

static const char *const close_sentences[] = {
    [CLOSE_NONE] = "",
#define CLOSE(id, sentence, told) [CLOSE_##id] = sentence,
#include "net/close.def"
#undef CLOSE
};

static const enum watch_reason close_told[] = {
    [CLOSE_NONE] = WATCH_REASON_NORMAL,
#define CLOSE(id, sentence, told) [CLOSE_##id] = WATCH_REASON_##told,
#include "net/close.def"
#undef CLOSE
};

static void
set_state(struct conn *c, enum registry_state state)
{
    atomic_store_explicit(&c->entry.state, state, memory_order_relaxed);
}

/* ---- input and output ----------------------------------------------------------------- */

static enum io
classify_recv(struct conn *c, ssize_t n, size_t room)
{
    if (n > 0) {
        ctr_add(&c->worker->ctr.bytes_read, (uint64_t)n);
        /* A short read has emptied the socket; the next bytes raise a new edge. After a
         * hang-up there is no further edge, so read on to the end. */
        c->edge.is_readable = (size_t)n == room || c->edge.has_hangup;
        return IO_OK;
    }
    if (n == 0) {
        conn_close(c, CLOSE_EOF);
        return IO_CLOSED;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        c->edge.is_readable = false;
        c->edge.must_probe = false;
        return IO_AGAIN;
    }
    if (errno == EINTR) {
        return IO_OK;
    }
    conn_close(c, CLOSE_RESET);
    return IO_CLOSED;
}

/* As recv, and notes since when the input has been waiting: in the kernel, or behind others
 * in this pass of the loop. */
static __attribute__((noinline)) ssize_t
receive_timed(struct conn *c, const struct turn *turn, void *to, size_t room)
{
    struct worker *w = c->worker;
    struct sojourn_times times = {.ready_mono = turn->ready_at};
    bool is_followed = w->latency.conn == c;
    ssize_t n = is_followed ? latency_recv(&w->latency, c->fd, to, room, &times)
                            : stamp_recv(c->fd, to, room, &times);
    if (slo_is_on(&w->shared->slo)) {
        struct sojourn waited = sojourn_of(&times);
        nsec_t now = worker_read_clock(w);
        c->arrived_at = now - (c->was_blocked ? waited.loop : waited.total);
        c->was_blocked = false;
    }
    return n;
}

static enum io
fill(struct conn *c, const struct turn *turn)
{
    char *space;
    size_t room;
    struct worker *w = c->worker;
    if (unlikely(w->budget.bytes != 0) && c->in.cap != BUF_CAPACITY &&
        !budget_allows_read(&w->budget, &w->pool)) {
        conn_close(c, CLOSE_NO_MEMORY);
        return IO_CLOSED;
    }
    if (!buf_open(&c->in, &c->worker->pool, &space, &room)) {
        conn_close(c, CLOSE_NO_MEMORY);
        return IO_CLOSED;
    }
    must(room > 0);
    if (unlikely(c->tls != NULL)) {
        size_t got;
        c->arrived_at = c->worker->woke_at; /* records hide the kernel's timestamps */
        enum io io = conn_tls_recv(c, turn->is_inline, space, room, &got);
        buf_fill(&c->in, got);
        return io;
    }
    ssize_t n = unlikely(w->latency.conn == c || slo_is_on(&w->shared->slo))
                    ? receive_timed(c, turn, space, room)
                    : recv(c->fd, space, room, 0);
    if (n > 0) {
        buf_fill(&c->in, (size_t)n);
    }
    return classify_recv(c, n, room);
}

/* Receives body bytes straight into the item. */
static enum io
fill_body(struct conn *c, const struct turn *turn)
{
    char *to;
    size_t room = session_want(&c->session, &to);
    room = room < BODY_PIECE_BYTES ? room : BODY_PIECE_BYTES;
    if (unlikely(c->tls != NULL)) {
        size_t got;
        enum io io = conn_tls_recv(c, turn->is_inline, to, room, &got);
        session_got(&c->session, got);
        return io;
    }
    ssize_t n = recv(c->fd, to, room, 0);
    if (n > 0) {
        session_got(&c->session, (size_t)n);
    }
    return classify_recv(c, n, room);
}

static ssize_t
send_runs(int fd, struct iovec *iov, unsigned runs)
{
    if (runs == 1) {
        return send(fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL);
    }
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = runs};
    return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

/* *sent bytes of the runs have gone. */
static enum io
send_plain(struct conn *c, struct iovec *iov, unsigned runs, size_t *sent)
{
    size_t offered = 0;
    for (unsigned i = 0; i < runs; i++) {
        offered += iov[i].iov_len;
    }
    struct latency *l = &c->worker->latency;
    nsec_t begin = unlikely(l->conn == c) ? clock_now() : 0;
    ssize_t n = send_runs(c->fd, iov, runs);
    if (unlikely(begin != 0)) {
        latency_end(l, (enum req_class)c->habit.class, begin, clock_now());
    }
    *sent = n > 0 ? (size_t)n : 0;
    if (n >= 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
        c->edge.is_blocked = *sent < offered; /* the edge comes when there is room */
        return c->edge.is_blocked ? IO_AGAIN : IO_OK;
    }
    if (errno == EINTR) {
        return IO_OK;
    }
    conn_close(c, CLOSE_RESET);
    return IO_CLOSED;
}

/* Writes one piece of the output. IO_AGAIN: the socket is full. */
static enum io
flush(struct conn *c)
{
    struct iovec iov[OUT_RUNS_MAX];
    unsigned runs = chain_iov(&c->out, iov, OUT_RUNS_MAX, OUT_PIECE_BYTES);
    size_t sent;
    enum io io = unlikely(c->tls != NULL) ? conn_tls_send(c, iov, runs, &sent)
                                          : send_plain(c, iov, runs, &sent);
    if (sent > 0) {
        c->edge.must_probe = false;
        chain_consume(&c->out, &c->worker->env.chain, sent);
        ctr_add(&c->worker->ctr.bytes_written, sent);
        if (unlikely(c->share.replies != 0) && c->out.bytes == 0) {
            budget_release(&c->worker->budget, &c->share);
        }
    }
    return io;
}

/* ---- a turn --------------------------------------------------------------------------- */

/* How a turn, or a step of it, ended. */
enum step {
    STEP_ON,     /* go on */
    STEP_NEXT,   /* with the next request: this one is answered */
    STEP_WAIT,   /* for an event */
    STEP_DEFER,  /* queue for a deferred turn */
    STEP_QUEUED, /* waits for a token, queued already */
    STEP_CLOSED,
};

static bool
is_turn_over(const struct conn *c, const struct turn *turn)
{
    return !turn->is_inline && turn->deadline != TURN_ENDLESS &&
           worker_read_clock(c->worker) >= turn->deadline;
}

/* Gets rid of waiting output; ON when none is left. */
static enum step
drain_output(struct conn *c, const struct turn *turn)
{
    while (c->out.bytes > 0) {
        switch (flush(c)) {
        case IO_CLOSED:
            return STEP_CLOSED;
        case IO_AGAIN:
            return STEP_WAIT;
        default:
            break;
        }
        if (c->out.bytes > 0 && (turn->is_inline || is_turn_over(c, turn))) {
            return STEP_DEFER;
        }
    }
    return STEP_ON;
}

/* Measures where the time of the request goes that is about to be read. */
static void
follow(const struct conn *c, const struct turn *turn, enum session_next next)
{
    struct latency *l = &c->worker->latency;
    bool is_first = turn->reads == 1 && !turn->has_run && next == SESSION_MORE;
    if (is_first && c->tls == NULL && l->conn == NULL) {
        latency_begin(l, c, turn->ready_at);
    }
}

/* Nothing can run before more bytes arrive. */
static enum step
step_read(struct conn *c, struct turn *turn, enum session_next next)
{
    if (c->out.bytes > 0) {
        enum step step = drain_output(c, turn);
        if (step != STEP_ON) {
            return step;
        }
    }
    if (!c->edge.is_readable && !c->edge.must_probe) {
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
    enum io io = next == SESSION_WANT ? fill_body(c, turn) : fill(c, turn);
    if (unlikely(io >= IO_CLOSED)) {
        return io == IO_CLOSED ? STEP_CLOSED : io == IO_LATER ? STEP_DEFER : STEP_WAIT;
    }
    return is_turn_over(c, turn) ? STEP_DEFER : STEP_ON;
}

/* The last replies go out before the connection ends. */
static enum step
step_leave(struct conn *c, const struct turn *turn)
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
after_part(struct conn *c, const struct turn *turn, enum session_ran ran)
{
    switch (ran) {
    case RAN_AGAIN:
        return turn->is_inline || is_turn_over(c, turn) ? STEP_DEFER : STEP_ON;
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
    const struct req *req = &c->session.req;
    return (struct limiter_request){.class = class,
                                    .peer = c->peer.key,
                                    .since = c->arrived_at,
                                    .keys =
                                        req->family == FAMILY_RETRIEVE ? req->keys : 1};
}

/* Answers the request at the head without running it. */
static enum step
refuse_request(struct conn *c, struct turn *turn)
{
    struct worker *w = c->worker;
    enum step step =
        after_run(c, turn,
                  session_refuse(&c->session, &w->env, &c->in, &c->out,
                                 limiter_refuses_as_miss(&w->shared->limiter)));
    return step == STEP_ON ? STEP_NEXT : step;
}

/* A new request is at the head: is it this connection's turn, and is there a token? */
static enum step
admit(struct conn *c, struct turn *turn, enum req_class class)
{
    struct worker *w = c->worker;
    if (turn->requests == 0) {
        ctr_add(&w->ctr.conn_yields, 1);
        return STEP_DEFER;
    }
    bool is_timed = turn->has_run && turn->requests % REQUESTS_TIMED == 0;
    if (is_timed && is_turn_over(c, turn)) {
        return STEP_DEFER; /* the worker's time is up, not this connection's number */
    }
    if (class_is_limited(class)) {
        struct limiter_request asked = request_of(c, class);
        enum limiter_verdict verdict = worker_admit(w, &c->task, &asked, turn->is_served);
        if (unlikely(verdict != VERDICT_ADMIT)) {
            if (verdict == VERDICT_WAIT) {
                PROBE(limiter__wait, c->fd, class);
                return STEP_QUEUED;
            }
            PROBE(qos__shed, c->fd, class);
            return refuse_request(c, turn);
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
        limiter_owe(&c->worker->desk, &more, c->worker->now);
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
    }
    if (class > turn->lane) {
        return STEP_DEFER;
    }
    bool may_be_late = class_is_inline(turn->lane) && !c->is_class_told;
    turn->has_run = true;
    set_state(c, REGISTRY_PARSE);
    w->env.client_fd = c->fd;
    struct session_limits limits = {.keys = KEYS_PER_RUN,
                                    .out_bytes = OUT_PIECE_BYTES,
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
    if (c->out.bytes >= OUT_PIECE_BYTES) {
        enum step drained = drain_output(c, turn);
        if (drained != STEP_ON) {
            return drained;
        }
        if (turn->is_inline) {
            return STEP_DEFER; /* small requests that add up to a piece have had their turn */
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

/* Replies of finished requests do not wait for the next one's turn; those of a request that
 * goes on are collected into large pieces. */
static enum step
flush_finished(struct conn *c, const struct turn *turn, enum step end)
{
    bool is_finished = !c->session.is_pending || !c->task.is_admitted ||
                       c->session.is_body || end == STEP_QUEUED || turn->is_inline;
    if (c->out.bytes == 0 || c->edge.is_blocked || !is_finished) {
        return end;
    }
    enum io io = flush(c);
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
    }
}

void
conn_turn(struct conn *c, struct turn *turn)
{
    enum step end;
    unsigned allowed = turn->requests;
    do {
        end = step(c, turn);
    } while (end == STEP_ON);
    c->rate.served += allowed - turn->requests;
    habit_end_turn(&c->habit, allowed - turn->requests, end == STEP_WAIT);
    if (end == STEP_DEFER || end == STEP_QUEUED) {
        end = flush_finished(c, turn, end);
    }
    atomic_store_explicit(&c->entry.last_cmd, c->worker->env.now, memory_order_relaxed);
    switch (end) {
    case STEP_WAIT:
        latency_forget(&c->worker->latency, c);
        rest(c);
        break;
    case STEP_DEFER:
        set_state(c, c->session.is_pending && !c->task.is_admitted ? REGISTRY_NEW
                                                                   : state_of(c));
        worker_defer(c->worker, &c->task, (enum req_class)c->habit.class);
        break;
    case STEP_QUEUED:
        set_state(c, REGISTRY_WAITING);
        break;
    default:
        break;
    }
}

/* ---- life ----------------------------------------------------------------------------- */

/* A connection that waits for a token keeps its place even when the client stops sending, but
 * not when it is gone: its request would take the token of a live one. */
bool
conn_is_reset(const struct conn *c)
{
    int error = 0;
    socklen_t len = sizeof error;
    if (!c->edge.must_probe) {
        return false;
    }
    must(getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0);
    return error != 0;
}

/* The one libevent callback of client descriptors. */
static void
on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    struct conn *c = arg;
    struct worker *w = c->worker;
    worker_refresh_now(w);
    if (what & (EV_READ | EV_CLOSED)) {
        c->edge.is_readable = true;
        c->edge.must_probe = true;
        c->edge.has_hangup |= (what & EV_CLOSED) != 0;
    }
    bool was_blocked = c->edge.is_blocked;
    c->was_blocked |= was_blocked;
    if ((what & EV_WRITE) != 0 || c->tls != NULL) { /* TLS may have to read to write */
        c->edge.is_blocked = false;
    }
    if (gate_is_waiting(&c->task.wait) && conn_is_reset(c)) {
        conn_close(c, CLOSE_RESET);
        return;
    }
    if (task_is_queued(&c->task) || c->edge.is_blocked) {
        return; /* its turn comes, or output has to go first */
    }
    if (was_blocked && c->out.bytes > 0) {
        /* output that was too much resumes in turns like all such work */
        worker_defer(w, &c->task, (enum req_class)c->habit.class);
        return;
    }
    enum req_class lane = habit_lane(&c->habit);
    if (unlikely(lane != CLASS_NONE) && w->shared->classes.is_on) {
        worker_defer(w, &c->task, lane);
        return;
    }
    struct turn turn = worker_inline_turn(w);
    conn_turn(c, &turn);
    worker_end_inline(w);
}

static void
link_conn(struct conn *c)
{
    struct worker *w = c->worker;
    c->prev = NULL;
    c->next = w->conns;
    if (w->conns != NULL) {
        w->conns->prev = c;
    }
    w->conns = c;
}

static void
unlink_conn(struct conn *c)
{
    idle_forget(c->worker, c);
    migrate_forget(c->worker, c);
    *(c->prev != NULL ? &c->prev->next : &c->worker->conns) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
}

static void
tell_watchers(const struct conn *c, enum watch_kind kind, enum watch_reason reason)
{
    struct watch_ring *log = c->worker->env.log;
    if (watch_wants(log, WATCH_CONNEVENTS)) {
        struct watch_event event = {
            .kind = (uint8_t)kind, .status = (uint8_t)reason, .fd = c->fd};
        watch_push(log, &event, c->entry.addr, strlen(c->entry.addr));
    }
}

static void
refuse(struct worker *w, int fd)
{
    static struct log_rate rate;
    log_write_limited(LOG_WARNING, &rate, w->now, "no memory for a connection");
    close(fd);
    worker_forget(w);
    atomic_fetch_sub(&w->shared->open_conns, 1);
}

/* What is already there is reported, like all that comes from here on. */
static bool
register_event(struct conn *c)
{
    short what = EV_READ | EV_WRITE | EV_CLOSED | EV_ET | EV_PERSIST;
    return event_assign(&c->event, c->worker->base, c->fd, what, on_event, c) == 0 &&
           event_add(&c->event, NULL) == 0;
}

void
conn_create(struct worker *w, const struct handoff *handoff)
{
    struct conn *c = calloc(1, sizeof *c);
    if (c == NULL) {
        refuse(w, handoff->fd);
        return;
    }
    c->worker = w;
    c->fd = handoff->fd;
    c->entry.fd = c->fd;
    c->entry.listen_addr = handoff->listen_addr;
    atomic_init(&c->entry.state, REGISTRY_READ);
    atomic_init(&c->entry.last_cmd, w->env.now);
    session_init(&c->session);
    c->session.binding = handoff->binding;
    c->session.declared = conn_class_of_place(w, handoff);
    c->peer = handoff->peer;
    c->tag = handoff->tag;
    c->rate.since = w->now;
    c->mail.kind = MAIL_MOVED;
    c->is_tcp = addr_describe(&c->peer, c->fd, c->entry.addr, sizeof c->entry.addr);
    if ((handoff->tls != TLS_OFF && !conn_tls_begin(c, handoff->tls)) ||
        !registry_add(&w->shared->registry, &c->entry)) {
        conn_tls_end(c);
        free(c);
        refuse(w, handoff->fd);
        return;
    }
    if (!register_event(c)) {
        registry_remove(&w->shared->registry, &c->entry);
        conn_tls_end(c);
        free(c);
        refuse(w, handoff->fd);
        return;
    }
    link_conn(c);
    PROBE(conn__allocate, c->fd);
    PROBE(conn__create, c);
    tell_watchers(c, WATCH_CONN_NEW, WATCH_REASON_NORMAL);
    log_write(LOG_DEBUG, "<%d new client connection", c->fd);
}

void
conn_close(struct conn *c, enum close_reason reason)
{
    must(reason != CLOSE_NONE && c->closing == CLOSE_NONE);
    struct worker *w = c->worker;
    c->closing = reason;
    worker_unqueue(w, &c->task);
    latency_forget(&w->latency, c);
    event_del(&c->event);
    c->next_doomed = w->doomed;
    w->doomed = c;
}

static void
leave_for_good(struct conn *c)
{
    struct net_shared *shared = c->worker->shared;
    if (c->watcher != NULL) {
        watcher_drop(shared->watchers, c->watcher);
    }
    tell_watchers(c, WATCH_CONN_CLOSE, close_told[c->closing]);
    registry_remove(&shared->registry, &c->entry);
    close(c->fd);
    atomic_fetch_sub(&shared->open_conns, 1);
}

void
conn_destroy(struct conn *c)
{
    struct worker *w = c->worker;
    PROBE(conn__release, c->fd);
    PROBE(conn__destroy, c);
    log_write(LOG_DEBUG, "<%d connection closed: %s", c->fd, close_sentences[c->closing]);
    session_fini(&c->session, &w->env);
    chain_clear(&c->out, &w->env.chain);
    budget_release(&w->budget, &c->share);
    buf_fini(&c->in, &w->pool);
    unlink_conn(c);
    worker_forget(w);
    if (c->closing == CLOSE_WATCH) {
        watchers_give(w->shared->watchers, c->watcher, &c->entry, conn_tls_take(c));
    } else {
        conn_tls_end(c);
        leave_for_good(c);
    }
    free(c);
}

void
conn_drain(struct conn *c)
{
    if (c->closing != CLOSE_NONE || task_is_queued(&c->task)) {
        return;
    }
    if (c->edge.is_blocked) {
        return; /* closes when its output has gone, or with the process */
    }
    c->edge.is_readable = true; /* look once more for requests that have arrived */
    worker_defer(c->worker, &c->task, (enum req_class)c->habit.class);
}

/* ---- to another worker ---------------------------------------------------------------- */

/* An edge that no read has used up would be lost with the event, and a debug lock belongs to
 * its thread. */
bool
conn_is_movable(const struct conn *c)
{
    return c->closing == CLOSE_NONE && c->leaving == CLOSE_NONE &&
           !task_is_queued(&c->task) && c->out.bytes == 0 && c->out.block == NULL &&
           c->in.mem == NULL && c->share.replies == 0 && !c->edge.is_blocked &&
           !c->edge.is_readable && !c->edge.must_probe && c->session.holds == NULL &&
           (c->tls == NULL || tls_is_agreed(c->tls->session)) &&
           session_is_quiescent(&c->session, &c->in);
}

void
conn_leave(struct conn *c)
{
    must(event_del(&c->event) == 0);
    unlink_conn(c);
    c->worker = NULL;
}

void
conn_join(struct conn *c, struct worker *w)
{
    c->worker = w;
    bool is_registered = register_event(c);
    link_conn(c);
    if (!is_registered) {
        conn_close(c, CLOSE_NO_MEMORY);
    } else if (w->is_draining) {
        conn_drain(c);
    }
}

void
conn_drop(struct conn *c, struct worker *w)
{
    c->worker = w;
    c->closing = CLOSE_SHUTDOWN;
    link_conn(c);
    conn_destroy(c);
}
