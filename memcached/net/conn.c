/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn.h"

#include <poll.h>
#include <sys/ioctl.h>

#include "base/log.h"
#include "net/worker.h"
#include "sock/tls.h"

/* A connection that waits for a token keeps its place even when the client stops sending, but
 * not when it is gone: its request would take the token of a live one. That a TCP client has closed its
 * socket looks as if it sends no more until something is sent to it; of a UNIX socket the kernel tells. */
bool
conn_is_reset(const struct conn *c)
{
    struct pollfd state = {.fd = c->source.fd};
    return c->edge.must_probe && poll(&state, 1, 0) > 0 &&
           (state.revents & (POLLERR | POLLHUP)) != 0;
}

bool
conn_has_unread(const struct conn *c)
{
    int bytes = 0;
    return !c->edge.is_blocked && ioctl(c->source.fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

void
conn_link(struct conn *c)
{
    struct worker *w = c->worker;
    c->prev = NULL;
    c->next = w->conns.first;
    if (w->conns.first != NULL) {
        w->conns.first->prev = c;
    }
    w->conns.first = c;
}

void
conn_unlink(struct conn *c)
{
    for (unsigned i = 0; i < WALKS; i++) {
        struct conn **next = &c->worker->conns.walks[i];
        *next = *next == c ? c->next : *next;
    }
    *(c->prev != NULL ? &c->prev->next : &c->worker->conns.first) = c->next;
    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
}

bool
conn_watch(struct conn *c)
{
    return poller_add(&c->worker->poller, &c->source,
                      POLLER_READ | POLLER_WRITE | POLLER_HANGUP | POLLER_EDGE);
}

static void
to_be_destroyed(struct conn *c)
{
    c->next_closed = c->worker->conns.closed;
    c->worker->conns.closed = c;
}

/* The client sees nothing but a reset. */
static void
tell_no_memory(struct worker *w)
{
    static struct log_rate rate;
    ctr_add(&w->core.budget.read_oom, 1);
    log_write_limited(LOG_WARNING, &rate, w->core.now,
                      "memcached: warning: no memory for what a client sends or is sent; "
                      "its connection is closed");
}

__attribute__((noinline)) void
conn_close(struct conn *c, enum close_reason reason)
{
    must(reason != CLOSE_NONE && c->closing == CLOSE_NONE);
    struct worker *w = c->worker;
    c->closing = reason;
    if (reason == CLOSE_NO_MEMORY) {
        tell_no_memory(w);
    }
    queue_leave(&w->core, &c->pump.work);
    coalesce_forget(&c->pump);
    latency_forget(&w->core.latency, &c->pump);
    poller_remove(&w->poller, &c->source);
    pump_drop(&c->pump); /* at once: thousands may end in one pass */
    if (unlikely(c->is_parked)) {
        session_leave_parked(&c->pump.session);
    } else {
        to_be_destroyed(c);
    }
}

void
conn_resume(struct conn *c)
{
    c->is_parked = false;
    if (c->closing != CLOSE_NONE) {
        to_be_destroyed(c);
        return;
    }
    arrival_resume(&c->pump.arrival, c->pump.core->now);
    queue_put(c->pump.core, &c->pump.work, pump_lane(&c->pump));
}

void
conn_drain(struct conn *c)
{
    if (c->closing != CLOSE_NONE || work_is_queued(&c->pump.work) || c->is_parked) {
        return;
    }
    if (c->edge.is_blocked) {
        return; /* closes when its output has gone, or with the process */
    }
    c->edge.is_readable = true; /* look once more for requests that have arrived */
    queue_put(c->pump.core, &c->pump.work, pump_lane(&c->pump));
}

/* ---- to another worker ---------------------------------------------------------------- */

/* Nothing of it but input is in the worker. A debug lock belongs to its thread. */
static bool
has_only_input(const struct conn *c)
{
    return c->closing == CLOSE_NONE && c->leaving == CLOSE_NONE &&
           !work_is_queued(&c->pump.work) && c->pump.out.bytes == 0 &&
           c->pump.out.block == NULL && c->pump.share.replies == 0 &&
           !c->edge.is_blocked && c->pump.session.holds == NULL &&
           (c->tls == NULL || c->tls->session->is_agreed);
}

/* It has input, or an edge that no read has used up: no event will tell of them again. */
static bool
has_input(const struct conn *c)
{
    return c->pump.in.mem != NULL || c->edge.is_readable || c->edge.must_probe;
}

bool
conn_is_movable(const struct conn *c)
{
    return has_only_input(c) && !has_input(c) &&
           session_is_quiescent(&c->pump.session, &c->pump.in);
}

bool
conn_pack(struct conn *c)
{
    return has_only_input(c) && !c->pump.work.ticket.is_admitted &&
           session_rewind(&c->pump.session) &&
           buf_detach(&c->pump.in, &c->worker->core.pool);
}

void
conn_leave(struct conn *c)
{
    poller_remove(&c->worker->poller, &c->source);
    coalesce_forget(&c->pump);
    latency_forget(&c->worker->core.latency, &c->pump);
    conn_unlink(c);
    if (c->move != NULL) {
        c->move->pending.is_set = false;
    }
    c->worker = NULL;
}

void
conn_join(struct conn *c, struct worker *w)
{
    c->worker = w;
    c->message.kind = MESSAGE_BACK;
    pump_join(&c->pump, &w->core);
    bool is_polled = conn_watch(c);
    conn_link(c);
    if (!is_polled) {
        conn_close(c, CLOSE_NO_MEMORY);
    } else if (w->core.is_draining) {
        conn_drain(c);
    } else if (has_input(c)) {
        queue_put(&w->core, &c->pump.work, pump_lane(&c->pump));
    }
}
