/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_tls.h"

#include "base/log.h"
#include "net/worker.h"

/* ---- handshakes, oldest first --------------------------------------------------------- */

static void
join_handshakes(struct conn *c)
{
    struct worker *w = c->worker;
    c->tls->prev = w->handshakes.last;
    *(w->handshakes.last != NULL ? &w->handshakes.last->tls->next
                                 : &w->handshakes.first) = c;
    w->handshakes.last = c;
}

static void
leave_handshakes(struct conn *c)
{
    struct worker *w = c->worker;
    struct conn_tls *t = c->tls;
    *(t->prev != NULL ? &t->prev->tls->next : &w->handshakes.first) = t->next;
    *(t->next != NULL ? &t->next->tls->prev : &w->handshakes.last) = t->prev;
    t->next = t->prev = NULL;
}

void
conn_tls_expire(struct worker *w)
{
    struct conn *next;
    for (struct conn *c = w->handshakes.first; c != NULL; c = next) {
        next = c->tls->next;
        if (w->core.env.now - c->tls->since <= CONN_TLS_SECONDS) {
            return;
        }
        if (c->closing == CLOSE_NONE && !conn_has_unread(c)) {
            ctr_add(&w->tls.handshake_errors, 1);
            conn_close(c, CLOSE_HANDSHAKE);
        }
    }
}

/* ---- life ----------------------------------------------------------------------------- */

bool
conn_tls_begin(struct conn *c, enum tls_mode mode)
{
    struct worker *w = c->worker;
    c->tls = calloc(1, sizeof *c->tls);
    if (c->tls == NULL) {
        return false;
    }
    c->tls->session = tls_begin(w->shared->tls, c->source.fd, mode);
    if (c->tls->session == NULL) {
        free(c->tls);
        c->tls = NULL;
        return false;
    }
    c->tls->since = w->core.env.now;
    join_handshakes(c);
    return true;
}

struct tls_session *
conn_tls_take(struct conn *c)
{
    if (c->tls == NULL) {
        return NULL;
    }
    struct tls_session *session = c->tls->session;
    if (!session->is_agreed) {
        leave_handshakes(c);
    }
    free(c->tls);
    c->tls = NULL;
    return session;
}

void
conn_tls_end(struct conn *c)
{
    struct tls_session *session = conn_tls_take(c);
    tls_end(&session);
}

/* ---- input and output ----------------------------------------------------------------- */

static enum io
end_broken(struct conn *c, enum close_reason reason)
{
    static struct log_rate rate;
    log_write_limited(LOG_INFO, &rate, c->worker->core.now, "<%d TLS: %s", c->source.fd,
                      c->tls->session->reason);
    conn_close(c, reason);
    return IO_CLOSED;
}

/* What is not done has told what it waits for. */
static enum io
await(struct conn *c, enum tls_io io, enum close_reason reason)
{
    switch (io) {
    case TLS_OK:
    case TLS_MORE:
        return IO_OK;
    case TLS_WANT_READ:
        /* After a hang-up there is no further edge. */
        c->edge.is_readable = c->edge.has_hangup;
        c->edge.must_probe = false;
        return IO_AGAIN;
    case TLS_WANT_WRITE:
        c->edge.is_blocked = true;
        return IO_STUCK;
    case TLS_EOF:
        if (c->tls->session->is_agreed) {
            conn_close(c, CLOSE_EOF);
            return IO_CLOSED;
        }
        return end_broken(c, reason);
    case TLS_BROKEN:
        return end_broken(c, reason);
    }
    unreachable();
}

/* The costly part of a connection waits for a turn of its own, behind the requests of the
 * others. */
static enum io
go_on_with_handshake(struct conn *c, bool is_inline)
{
    if (is_inline) {
        return IO_LATER;
    }
    enum tls_io io = tls_handshake(c->tls->session, &c->worker->tls);
    if (io == TLS_OK) {
        leave_handshakes(c);
    }
    return await(c, io, CLOSE_HANDSHAKE);
}

enum io
conn_tls_recv(struct conn *c, bool is_inline, char *to, size_t room, size_t *got)
{
    struct worker *w = c->worker;
    bool has_more = false;
    *got = 0;
    if (unlikely(!c->tls->session->is_agreed)) {
        return go_on_with_handshake(c, is_inline);
    }
    enum tls_io io = tls_recv(c->tls->session, &w->tls, to, room, got, &has_more);
    if (io == TLS_OK) {
        ctr_add(&w->ctr.bytes_read, *got);
        c->edge.is_readable = has_more || c->edge.has_hangup;
    }
    return await(c, io, CLOSE_RESET);
}

enum io
conn_tls_send(struct conn *c, const struct iovec *iov, unsigned runs, size_t *sent)
{
    enum tls_io io = tls_send(c->tls->session, &c->worker->tls, iov, runs, sent);
    /* Input ends it as well, see conn_on_ready. */
    c->edge.is_blocked = io == TLS_WANT_READ || io == TLS_WANT_WRITE;
    return c->edge.is_blocked ? IO_AGAIN : await(c, io, CLOSE_RESET);
}
