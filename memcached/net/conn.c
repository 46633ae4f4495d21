/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/probe.h"
#include "net/conn_io.h"
#include "net/conn_tls.h"
#include "net/watchers.h"
#include "net/worker.h"

static const char *const binding_words[] = {
    [BINDING_DEFAULT] = "auto-negotiating",
    [BINDING_AUTO] = "auto-negotiating",
    [BINDING_ASCII] = "ascii",
    [BINDING_BINARY] = "binary",
};

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
    must(getsockopt(c->source.fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0);
    return error != 0;
}

static void
on_ready(struct poll_source *source, unsigned ready)
{
    struct conn *c =
        (struct conn *)(void *)((char *)source - offsetof(struct conn, source));
    struct worker *w = c->worker;
    core_wake(&w->core);
    if (ready & (POLLER_READ | POLLER_HANGUP)) {
        c->edge.is_readable = true;
        c->edge.must_probe = true;
        c->edge.has_hangup |= (ready & POLLER_HANGUP) != 0;
    }
    bool was_blocked = c->edge.is_blocked;
    c->pump.arrival.was_blocked |= was_blocked;
    if ((ready & POLLER_WRITE) != 0 ||
        c->tls != NULL) { /* TLS may have to read to write */
        c->edge.is_blocked = false;
    }
    if (ticket_is_waiting(&c->pump.work.ticket) && conn_is_reset(c)) {
        conn_close(c, CLOSE_RESET);
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
    struct turn turn = core_inline_turn(&w->core);
    turn.is_alone = poller_had_one(&w->poller);
    conn_turn(c, &turn);
    worker_end_inline(w, &turn);
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
    struct watch_ring *log = c->worker->core.env.log;
    if (watch_wants(log, WATCH_CONNEVENTS)) {
        struct watch_event event = {
            .kind = (uint8_t)kind, .status = (uint8_t)reason, .fd = c->source.fd};
        watch_push(log, &event, c->entry.addr, strlen(c->entry.addr));
    }
}

static void
refuse(struct worker *w, int fd)
{
    static struct log_rate rate;
    log_write_limited(LOG_WARNING, &rate, w->core.now, "no memory for a connection");
    close(fd);
    worker_forget(w);
    atomic_fetch_sub(&w->shared->open_conns, 1);
}

/* What is already there is reported, like all that comes from here on. */
static bool
start_polling(struct conn *c)
{
    return poller_add(&c->worker->poller, &c->source,
                      POLLER_READ | POLLER_WRITE | POLLER_HANGUP | POLLER_EDGE);
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
    c->source = (struct poll_source){.fd = handoff->fd, .on_ready = on_ready};
    c->entry.fd = c->source.fd;
    c->entry.listen_addr = handoff->listen_addr;
    atomic_init(&c->entry.state, REGISTRY_READ);
    atomic_init(&c->entry.last_cmd, w->core.env.now);
    pump_init(&c->pump, &w->core, &conn_work, handoff->peer.key);
    c->pump.way = handoff->tls != TLS_OFF ? PACE_TLS : PACE_PLAIN;
    c->pump.answers_together = true;
    c->pump.session.binding = handoff->binding;
    c->pump.session.declared =
        net_shared_declared(w->shared, &handoff->peer, handoff->declared);
    c->pump.session.may_control = handoff->may_control;
    c->pump.session.is_local = handoff->is_local;
    c->tag = handoff->tag;
    c->rate.since = w->core.now;
    c->message.kind = MESSAGE_MOVED;
    c->is_tcp =
        addr_describe(&handoff->peer, c->source.fd, c->entry.addr, sizeof c->entry.addr);
    if ((handoff->tls != TLS_OFF && !conn_tls_begin(c, handoff->tls)) ||
        !registry_add(&w->shared->registry, &c->entry)) {
        conn_tls_end(c);
        free(c);
        refuse(w, handoff->fd);
        return;
    }
    if (!start_polling(c)) {
        registry_remove(&w->shared->registry, &c->entry);
        conn_tls_end(c);
        free(c);
        refuse(w, handoff->fd);
        return;
    }
    link_conn(c);
    PROBE(conn__allocate, c->source.fd);
    PROBE(conn__create, c);
    tell_watchers(c, WATCH_CONN_NEW, WATCH_REASON_NORMAL);
    log_write(LOG_DEBUG, "<%d new %s client connection", c->source.fd,
              binding_words[c->pump.session.binding != BINDING_DEFAULT
                                ? c->pump.session.binding
                                : w->core.env.conf->binding]);
}

void
conn_close(struct conn *c, enum close_reason reason)
{
    must(reason != CLOSE_NONE && c->closing == CLOSE_NONE);
    struct worker *w = c->worker;
    c->closing = reason;
    queue_leave(&w->core, &c->pump.work);
    coalesce_forget(&c->pump);
    latency_forget(&w->core.latency, &c->pump);
    poller_remove(&w->poller, &c->source);
    if (reason == CLOSE_EOF) {
        conn_send_rest(c);
    }
    pump_drop(&c->pump); /* at once: thousands may end in one pass */
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
    close(c->source.fd);
    atomic_fetch_sub(&shared->open_conns, 1);
}

void
conn_destroy(struct conn *c)
{
    struct worker *w = c->worker;
    PROBE(conn__release, c->source.fd);
    PROBE(conn__destroy, c);
    bool is_usual = c->closing == CLOSE_EOF || c->closing == CLOSE_QUIT;
    log_write(LOG_DEBUG, "<%d connection closed.%s%s", c->source.fd,
              is_usual ? "" : " Reason: ", is_usual ? "" : close_sentences[c->closing]);
    session_fini(&c->pump.session, &w->core.env);
    pump_drop(&c->pump);
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
    if (c->closing != CLOSE_NONE || work_is_queued(&c->pump.work)) {
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
           (c->tls == NULL || tls_is_agreed(c->tls->session));
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
    unlink_conn(c);
    c->wish.is_set = false;
    c->worker = NULL;
}

void
conn_join(struct conn *c, struct worker *w)
{
    c->worker = w;
    pump_join(&c->pump, &w->core);
    bool is_polled = start_polling(c);
    link_conn(c);
    if (!is_polled) {
        conn_close(c, CLOSE_NO_MEMORY);
    } else if (w->core.is_draining) {
        conn_drain(c);
    } else if (has_input(c)) {
        queue_put(&w->core, &c->pump.work, pump_lane(&c->pump));
    }
}

void
conn_drop(struct conn *c, struct worker *w)
{
    c->worker = w;
    pump_join(&c->pump, &w->core);
    c->closing = CLOSE_SHUTDOWN;
    link_conn(c);
    conn_destroy(c);
}
