/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_io.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "net/conn_tls.h"
#include "net/worker.h"
#include "sock/stamp.h"

#define OUT_RUNS_MAX 64        /* runs in one sendmsg */
#define BODY_PIECE_BYTES 65536 /* received into an item at once */

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

/* How long the oldest of several requests that have been read together has waited. The kernel
 * tells of the last only. Sockets are reported in the order in which they became ready and read
 * in that order, so the first request waited for about as long as the pass before this one took;
 * but no longer than since the socket was read empty. */
static nsec_t
oldest_age(const struct conn *c, const struct turn *turn, const struct sojourn_times *t)
{
    const struct worker *w = c->worker;
    nsec_t pass = turn->ready_at == w->woke_at ? w->woke_at - w->heard_at : 0;
    nsec_t unread = t->read_mono > c->empty_at ? t->read_mono - c->empty_at : 0;
    return c->has_rest || unread < pass ? unread : pass;
}

/* Notes since when the n bytes at p have waited; has_rest: more may be unread. */
static void
note_arrival(struct conn *c, const struct turn *turn, const struct sojourn_times *times,
             const char *p, size_t n, bool has_rest)
{
    struct sojourn waited = sojourn_of(times);
    nsec_t age = c->was_blocked ? waited.loop : waited.total;
    const char *line_feed = memchr(p, '\n', n);
    if (!c->was_blocked && line_feed != NULL && line_feed < p + n - 1) {
        nsec_t oldest = oldest_age(c, turn, times);
        age = oldest > age ? oldest : age;
    }
    /* A client that trickles delays itself: that says nothing of the worker's queue. */
    c->arrived_at = habit_trickles(&c->habit) ? 0 : times->read_mono - age;
    c->was_blocked = false;
    c->has_rest = has_rest;
    c->empty_at = has_rest ? times->read_mono - age : times->read_mono;
}

/* The same of input that was not measured. */
static void
note_unmeasured(struct conn *c, bool has_rest)
{
    c->arrived_at = 0;
    c->was_blocked = false;
    c->has_rest = has_rest;
    c->empty_at = c->worker->woke_at;
}

/* After a read over TLS: whether more may be unread is known only from one that found nothing. */
static void
note_records(struct conn *c, enum io io, size_t got, size_t room, bool is_timed)
{
    if (got > 0 && !is_timed) {
        note_unmeasured(c, got == room || c->edge.is_readable);
    } else if (io == IO_AGAIN) {
        c->has_rest = false;
        c->empty_at = c->worker->woke_at;
    }
}

/* As recv, and notes since when the input has been waiting: in the kernel, or behind others
 * in this pass of the loop. */
static __attribute__((noinline)) ssize_t
receive_timed(struct conn *c, const struct turn *turn, void *to, size_t room)
{
    struct worker *w = c->worker;
    struct sojourn_times times = {.ready_mono = turn->ready_at};
    bool is_followed = w->latency.who == c;
    ssize_t n = is_followed ? latency_recv(&w->latency, c->fd, to, room, &times)
                            : stamp_recv(c->fd, to, room, &times);
    if (n > 0 && slo_is_on(&w->shared->slo)) {
        worker_read_clock(w);
        note_arrival(c, turn, &times, to, (size_t)n, (size_t)n == room);
    }
    return n;
}

/* The same over TLS. Records have no stamps, so that of the packet which is next in the socket is
 * looked at before. It says nothing of a record that came with those before it: that one has
 * waited for as long as they. */
static __attribute__((noinline)) enum io
receive_peeked(struct conn *c, const struct turn *turn, char *to, size_t room,
               size_t *got)
{
    struct worker *w = c->worker;
    struct sojourn_times times = {0};
    stamp_peek(c->fd, &times);
    times.read_mono = clock_now();
    enum io io = conn_tls_recv(c, turn->is_inline, to, room, got);
    times.ready_mono = turn->ready_at;
    bool was_held = *got > 0 && tls_was_held(c->tls->session);
    if (was_held) {
        times.rx_wall = 0;
    }
    if (*got > 0 && w->latency.who == c) {
        latency_read(&w->latency, &times);
    }
    if (*got > 0 && slo_is_on(&w->shared->slo)) {
        worker_read_clock(w);
        if (!was_held || c->was_blocked) {
            note_arrival(c, turn, &times, to, *got, *got == room || c->edge.is_readable);
        }
    }
    return io;
}

enum io
conn_fill(struct conn *c, const struct turn *turn)
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
    bool has_slo = slo_is_on(&w->shared->slo);
    bool is_timed = w->latency.who == c ||
                    (unlikely(has_slo) && slo_wants_delay(&w->slo, w->woke_at));
    if (unlikely(c->tls != NULL)) {
        size_t got;
        enum io io = unlikely(is_timed)
                         ? receive_peeked(c, turn, space, room, &got)
                         : conn_tls_recv(c, turn->is_inline, space, room, &got);
        if (unlikely(has_slo)) {
            note_records(c, io, got, room, is_timed);
        }
        buf_fill(&c->in, got);
        return io;
    }
    ssize_t n = unlikely(is_timed) ? receive_timed(c, turn, space, room)
                                   : recv(c->fd, space, room, 0);
    if (n > 0) {
        if (unlikely(has_slo) && !is_timed) {
            note_unmeasured(c, (size_t)n == room);
        }
        buf_fill(&c->in, (size_t)n);
    }
    return classify_recv(c, n, room);
}

enum io
conn_fill_body(struct conn *c, const struct turn *turn)
{
    char *to;
    size_t room = session_want(&c->session, &to);
    room = room < BODY_PIECE_BYTES ? room : BODY_PIECE_BYTES;
    if (unlikely(c->tls != NULL)) {
        size_t got;
        enum io io = conn_tls_recv(c, turn->is_inline, to, room, &got);
        if (unlikely(slo_is_on(&c->worker->shared->slo))) {
            note_records(c, io, got, room, false); /* requests may have come with it */
        }
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
send_runs(int fd, struct iovec *iov, unsigned runs, int flags)
{
    if (runs == 1) {
        return send(fd, iov[0].iov_base, iov[0].iov_len, flags);
    }
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = runs};
    return sendmsg(fd, &msg, flags);
}

/* *sent bytes of the runs have gone. */
static enum io
send_plain(struct conn *c, struct iovec *iov, unsigned runs, size_t *sent)
{
    size_t offered = 0;
    for (unsigned i = 0; i < runs; i++) {
        offered += iov[i].iov_len;
    }
    /* The end of a piece that is no whole segment goes with the next piece, not alone. */
    int more = offered < c->out.bytes ? MSG_MORE : 0;
    ssize_t n = send_runs(c->fd, iov, runs, MSG_NOSIGNAL | more);
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

/* Those that begin in the next `most` bytes. */
static void
tell_replies(struct conn *c, size_t most)
{
    if (log_level() >= LOG_DEBUG) {
        struct iovec runs[OUT_RUNS_MAX];
        unsigned count = chain_iov(&c->out, runs, OUT_RUNS_MAX, most + VERBOSE_LINE_MAX);
        verbose_replies(&c->verbose, c->fd, c->session.req.protocol == PROTOCOL_BINARY,
                        runs, count);
    }
}

enum io
conn_flush(struct conn *c, size_t most, size_t *sent)
{
    struct iovec iov[OUT_RUNS_MAX];
    unsigned runs = chain_iov(&c->out, iov, OUT_RUNS_MAX, most);
    struct latency *l = &c->worker->latency;
    nsec_t begin = unlikely(l->who == c) ? clock_now() : 0;
    if (unlikely(c->worker->env.looks_closer)) {
        tell_replies(c, most);
    }
    enum io io = unlikely(c->tls != NULL) ? conn_tls_send(c, iov, runs, sent)
                                          : send_plain(c, iov, runs, sent);
    if (unlikely(begin != 0)) {
        latency_end(l, (enum req_class)c->habit.class, begin, clock_now());
    }
    /* TLS may have sent some of it before it failed; then there is no output any more. */
    if (*sent > 0 && likely(c->closing == CLOSE_NONE)) {
        c->edge.must_probe = false;
        if (unlikely(c->worker->env.looks_closer)) {
            verbose_sent(&c->verbose, *sent);
        }
        chain_consume(&c->out, &c->worker->env.chain, *sent);
        c->hold.bytes = 0;
        if (unlikely(c->hold.is_held)) {
            hold_forget(c);
        }
        ctr_add(&c->worker->ctr.bytes_written, *sent);
        if (unlikely(c->share.replies != 0) && c->out.bytes == 0) {
            budget_release(&c->worker->budget, &c->share);
        }
    }
    return io;
}

void
conn_send_rest(struct conn *c)
{
    struct iovec iov[OUT_RUNS_MAX];
    if (c->out.bytes > 0 && c->out.bytes == c->hold.bytes) {
        unsigned runs = chain_iov(&c->out, iov, OUT_RUNS_MAX, c->out.bytes);
        (void)!send_runs(c->fd, iov, runs,
                         MSG_NOSIGNAL); /* closed whether it goes or not */
    }
}
