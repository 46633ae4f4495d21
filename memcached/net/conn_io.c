/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_io.h"

#include "base/log.h"
#include "net/conn_tls.h"
#include "net/worker.h"
#include "sock/stamp.h"
#include "sock/sys.h"

#define OUT_RUNS_MAX 64        /* runs in one sendmsg */
#define BODY_PIECE_BYTES 65536 /* received into an item at once */

static ssize_t
send_runs(int fd, struct iovec *iov, unsigned runs, int flags)
{
    if (runs == 1) {
        return sys_send(fd, iov[0].iov_base, iov[0].iov_len, flags);
    }
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = runs};
    return sys_sendmsg(fd, &msg, flags);
}

/* The client has closed its side: what was held goes out if the socket takes it. */
static void
send_rest(struct conn *c)
{
    struct iovec iov[OUT_RUNS_MAX];
    if (c->pump.out.bytes > 0 && c->pump.out.bytes == c->pump.coalesced.bytes) {
        unsigned runs = chain_iov(&c->pump.out, iov, OUT_RUNS_MAX, c->pump.out.bytes);
        (void)!send_runs(c->source.fd, iov, runs,
                         MSG_NOSIGNAL); /* closed whether it goes or not */
    }
}

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
        send_rest(c);
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

/* ---- reading, measured ----------------------------------------------------------------- */

static void
note_arrival(struct conn *c, const struct sojourn_times *times, const char *bytes,
             size_t len, bool has_rest)
{
    struct arrival_read r = {.bytes = bytes,
                             .len = len,
                             .has_rest = has_rest,
                             .is_own_delay = history_trickles(&c->pump.history),
                             .times = *times};
    arrival_note(&c->pump.arrival, &c->pump.core->pass, &r);
}

/* After a read over TLS: whether more may be unread is known only from one that found nothing. */
static void
note_records(struct conn *c, enum io io, size_t got, size_t room, bool is_timed)
{
    struct arrival *a = &c->pump.arrival;
    const struct pass *pass = &c->pump.core->pass;
    if (got > 0 && !is_timed) {
        arrival_note_unmeasured(a, pass, got == room || c->edge.is_readable);
    } else if (io == IO_AGAIN) {
        arrival_note_empty(a, pass);
    }
}

/* As recv, and notes since when the input has been waiting: in the kernel, or behind others
 * in this pass of the loop. */
static __attribute__((noinline)) ssize_t
receive_timed(struct conn *c, const struct turn *turn, void *to, size_t room)
{
    struct core *k = c->pump.core;
    struct sojourn_times times;
    ssize_t n = stamp_recv(c->source.fd, c->is_tcp, to, room, &times);
    times.ready_mono = turn->ready_at;
    if (n > 0 && k->latency.followed == &c->pump) {
        latency_read(&k->latency, &times, clock_now());
    }
    if (n > 0 && core_has_slo(k)) {
        core_read_clock(k);
        note_arrival(c, &times, to, (size_t)n, (size_t)n == room);
    }
    return n;
}

/* Peeked stamps: the same over TLS. Records have no stamps, but bytes keep their order, so the
 * packet which is next in the socket begins the next record or carries on with it: its stamp,
 * looked at before the read, is off by no more than a record takes to arrive. A record that came
 * with those before it has waited for as long as they. */
static __attribute__((noinline)) enum io
receive_peeked(struct conn *c, const struct turn *turn, char *to, size_t room,
               size_t *got)
{
    struct core *k = c->pump.core;
    struct sojourn_times times = {0};
    stamp_peek(c->source.fd, c->is_tcp, &times);
    times.read_mono = clock_now();
    enum io io = conn_tls_recv(c, turn->is_inline, to, room, got);
    times.ready_mono = turn->ready_at;
    bool was_held = *got > 0 && c->tls->session->was_held;
    if (was_held) {
        times.rx_wall = 0;
    }
    if (*got > 0 && k->latency.followed == &c->pump) {
        latency_read(&k->latency, &times, clock_now());
    }
    if (*got > 0 && core_has_slo(k)) {
        core_read_clock(k);
        if (!was_held || c->pump.arrival.was_blocked) {
            note_arrival(c, &times, to, *got, *got == room || c->edge.is_readable);
        }
    }
    return io;
}

/* ---- reading --------------------------------------------------------------------------- */

enum io
conn_fill(struct conn *c, const struct turn *turn)
{
    char *space;
    size_t room;
    struct pump *p = &c->pump;
    struct core *k = p->core;
    bool may_read = likely(!p->has_budget) || p->in.cap == BUF_CAPACITY ||
                    budget_allows_read(&k->budget, &k->pool);
    if (!may_read || !buf_open(&p->in, &k->pool, &space, &room)) {
        conn_close(c, may_read ? CLOSE_NO_MEMORY : CLOSE_BUDGET);
        return IO_CLOSED;
    }
    must(room > 0);
    bool has_slo = core_has_slo(k);
    bool is_timed =
        k->latency.followed == p || (unlikely(has_slo) && admission_wants_delay(k));
    if (unlikely(c->tls != NULL)) {
        size_t got;
        enum io io = unlikely(is_timed)
                         ? receive_peeked(c, turn, space, room, &got)
                         : conn_tls_recv(c, turn->is_inline, space, room, &got);
        if (unlikely(has_slo)) {
            note_records(c, io, got, room, is_timed);
        }
        buf_fill(&p->in, got);
        return io;
    }
    ssize_t n = unlikely(is_timed) ? receive_timed(c, turn, space, room)
                                   : sys_recv(c->source.fd, space, room, 0);
    if (n > 0) {
        if (unlikely(has_slo) && !is_timed) {
            arrival_note_unmeasured(&p->arrival, &k->pass, (size_t)n == room);
        }
        buf_fill(&p->in, (size_t)n);
    }
    return classify_recv(c, n, room);
}

enum io
conn_receive(struct conn *c, char *to, size_t room, size_t *got)
{
    ssize_t n = sys_recv(c->source.fd, to, room, 0);
    *got = n > 0 ? (size_t)n : 0;
    return classify_recv(c, n, room);
}

enum io
conn_fill_body(struct conn *c, const struct turn *turn)
{
    char *to;
    struct session *s = &c->pump.session;
    size_t room = session_want(s, &to);
    room = room < BODY_PIECE_BYTES ? room : BODY_PIECE_BYTES;
    size_t got;
    enum io io = unlikely(c->tls != NULL)
                     ? conn_tls_recv(c, turn->is_inline, to, room, &got)
                     : conn_receive(c, to, room, &got);
    if (unlikely(c->tls != NULL && core_has_slo(c->pump.core))) {
        note_records(c, io, got, room, false); /* requests may have come with it */
    }
    session_got(s, got);
    return io;
}

/* ---- writing --------------------------------------------------------------------------- */

/* *sent bytes of those that were offered have gone. */
static inline enum io
classify_send(struct conn *c, ssize_t n, size_t offered, size_t *sent)
{
    *sent = n > 0 ? (size_t)n : 0;
    if (likely(n >= 0) || errno == EAGAIN || errno == EWOULDBLOCK) {
        c->edge.is_blocked = *sent < offered; /* the edge comes when there is room */
        return c->edge.is_blocked ? IO_AGAIN : IO_OK;
    }
    if (errno == EINTR) {
        return IO_OK;
    }
    conn_close(c, CLOSE_RESET);
    return IO_CLOSED;
}

static enum io
send_plain(struct conn *c, struct iovec *iov, unsigned runs, size_t *sent)
{
    size_t offered = 0;
    for (unsigned i = 0; i < runs; i++) {
        offered += iov[i].iov_len;
    }
    /* The end of a piece that is no whole segment goes with the next piece, not alone. */
    int more = offered < c->pump.out.bytes ? MSG_MORE : 0;
    ssize_t n = send_runs(c->source.fd, iov, runs, MSG_NOSIGNAL | more);
    return classify_send(c, n, offered, sent);
}

enum io
conn_send(struct conn *c, const char *from, size_t bytes, size_t *sent)
{
    ssize_t n = sys_send(c->source.fd, from, bytes, MSG_NOSIGNAL);
    enum io io = classify_send(c, n, bytes, sent);
    if (*sent > 0) {
        c->edge.must_probe = false;
        ctr_add(&c->worker->ctr.bytes_written, *sent);
    }
    return io;
}

/* Those that begin in the next `most` bytes. */
static void
tell_replies(struct conn *c, size_t most)
{
    if (log_level() >= LOG_DEBUG) {
        struct iovec runs[OUT_RUNS_MAX];
        unsigned count =
            chain_iov(&c->pump.out, runs, OUT_RUNS_MAX, most + VERBOSE_LINE_MAX);
        verbose_replies(&c->verbose, c->source.fd,
                        c->pump.session.protocol == PROTOCOL_BINARY, runs, count);
    }
}

enum io
conn_flush(struct conn *c, size_t most, size_t *sent)
{
    struct iovec iov[OUT_RUNS_MAX];
    unsigned runs = chain_iov(&c->pump.out, iov, OUT_RUNS_MAX, most);
    struct latency *l = &c->worker->core.latency;
    nsec_t begin = latency_is_answered(l, &c->pump) ? clock_now() : 0;
    if (unlikely(c->worker->core.env.looks_closer)) {
        tell_replies(c, most);
    }
    enum io io = unlikely(c->tls != NULL) ? conn_tls_send(c, iov, runs, sent)
                                          : send_plain(c, iov, runs, sent);
    if (unlikely(begin != 0)) {
        latency_end(l, begin, clock_now());
    }
    /* TLS may have sent some of it before it failed; then there is no output any more. */
    if (*sent > 0 && likely(c->closing == CLOSE_NONE)) {
        c->edge.must_probe = false;
        if (unlikely(c->worker->core.env.looks_closer)) {
            verbose_sent(&c->verbose, *sent);
        }
        pump_sent(&c->pump, *sent);
        ctr_add(&c->worker->ctr.bytes_written, *sent);
    }
    return io;
}
