/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/conn_open.h"

#include <unistd.h>

#include "base/log.h"
#include "base/probe.h"
#include "net/conn_tls.h"
#include "net/conn_turn.h"
#include "net/listen.h"
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

static const enum watch_reason close_watch_reasons[] = {
    [CLOSE_NONE] = WATCH_REASON_NORMAL,
#define CLOSE(id, sentence, told) [CLOSE_##id] = WATCH_REASON_##told,
#include "net/close.def"
#undef CLOSE
};

static void
refuse(struct worker *w, int fd)
{
    static struct log_rate rate;
    log_write_limited(LOG_WARNING, &rate, w->core.now,
                      "memcached: warning: no memory for a connection");
    close(fd);
    worker_forget(w);
    atomic_fetch_sub(&w->shared->open_conns, 1);
}

void
conn_create(struct worker *w, const struct handoff *handoff)
{
    char addr[REGISTRY_ADDR_MAX];
    const struct listener *from = handoff->from;
    bool is_tcp = addr_describe(&handoff->peer, handoff->fd, addr, sizeof addr);
    size_t addr_bytes = strlen(addr) + 1;
    struct conn *c = calloc(1, sizeof *c + addr_bytes);
    if (c == NULL) {
        refuse(w, handoff->fd);
        return;
    }
    c->worker = w;
    c->source = (struct poll_source){.fd = handoff->fd, .on_ready = conn_on_ready};
    c->entry.fd = c->source.fd;
    c->entry.listen_addr = from->entry.addr;
    atomic_init(&c->entry.state, REGISTRY_READ);
    atomic_init(&c->entry.last_cmd, w->core.env.now);
    pump_init(&c->pump, &w->core, &conn_work, handoff->peer.key);
    c->pump.way = from->tls != TLS_OFF ? PACE_TLS : PACE_PLAIN;
    c->pump.answers_together = true;
    c->pump.session.binding = from->binding;
    c->pump.session.declared =
        net_shared_declared(w->shared, &handoff->peer, from->marks.declared);
    c->pump.session.may_control = handoff->may_control;
    c->pump.session.is_local = handoff->is_local;
    c->rate.since = w->core.now;
    c->message.kind = MESSAGE_BACK;
    c->is_tcp = is_tcp;
    c->entry.addr = memcpy(c->addr, addr, addr_bytes);
    bool is_known = (from->tls == TLS_OFF || conn_tls_begin(c, from->tls)) &&
                    registry_add(&w->shared->registry, &c->entry);
    if (!is_known || !conn_watch(c)) {
        if (is_known) {
            registry_remove(&w->shared->registry, &c->entry);
        }
        conn_tls_end(c);
        free(c);
        refuse(w, handoff->fd);
        return;
    }
    conn_link(c);
    PROBE(conn__allocate, c->source.fd);
    PROBE(conn__create, c);
    watch_push_conn(w->core.env.log, WATCH_CONN_NEW, WATCH_REASON_NORMAL, c->source.fd,
                    c->addr);
    log_write(LOG_DEBUG, "<%d new %s client connection", c->source.fd,
              binding_words[c->pump.session.binding != BINDING_DEFAULT
                                ? c->pump.session.binding
                                : w->core.env.conf->binding]);
    if (w->core.is_draining) {
        conn_drain(c);
    }
}

static void
leave_for_good(struct conn *c)
{
    struct net_shared *shared = c->worker->shared;
    if (c->watcher != NULL) {
        watcher_drop(shared->watchers, c->watcher);
    }
    watch_push_conn(c->worker->core.env.log, WATCH_CONN_CLOSE,
                    close_watch_reasons[c->closing], c->source.fd, c->addr);
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
    free(c->move);
    session_fini(&c->pump.session, &w->core.env);
    pump_drop(&c->pump);
    conn_unlink(c);
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
conn_drop(struct conn *c, struct worker *w)
{
    c->worker = w;
    pump_join(&c->pump, &w->core);
    c->closing = CLOSE_SHUTDOWN;
    conn_link(c);
    conn_destroy(c);
}
