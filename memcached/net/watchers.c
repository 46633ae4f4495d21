/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/watchers.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/owner_of.h"
#include "net/loop.h"

/* How often the rings are looked at while a client watches; one that fills wakes the
 * thread before. */
#define TICK_MS 50
#define DISCARD_BYTES 4096 /* read and thrown away at once */
#define DISCARDS_MAX 16    /* of a TLS client in a row: more than a session reads ahead */

struct watcher {
    struct mbox_message message; /* first: on its way to the thread */
    struct watchers *owner;
    int fd;
    struct tls_session *tls; /* NULL: plain */
    uint32_t types;
    nsec_t since; /* what happened before is not for this one */
    struct watch_outbox out;
    bool is_blocked; /* the socket is full: `writable` tells when it is not */
    struct event readable, writable;
    struct registry_entry entry;
    struct watcher *next, *prev;
    char addr[]; /* of the entry */
};

/* ---- watchers ------------------------------------------------------------------------- */

struct watcher *
watcher_create(struct watchers *ws, uint32_t types, const struct registry_entry *entry)
{
    size_t addr_bytes = strlen(entry->addr) + 1;
    struct watcher *w = calloc(1, sizeof *w + addr_bytes);
    if (w == NULL || !watch_outbox_init(&w->out, ws->watch->conf.outbox_bytes)) {
        free(w);
        return NULL;
    }
    w->owner = ws;
    w->fd = entry->fd;
    w->types = types;
    w->entry.fd = entry->fd;
    w->entry.listen_addr = entry->listen_addr;
    w->entry.addr = memcpy(w->addr, entry->addr, addr_bytes);
    atomic_init(&w->entry.state, REGISTRY_WATCH);
    atomic_init(&w->entry.last_cmd,
                atomic_load_explicit(&entry->last_cmd, memory_order_relaxed));
    return w;
}

static void
free_watcher(struct watcher *w)
{
    watch_outbox_fini(&w->out);
    free(w);
}

void
watcher_drop(struct watchers *ws, struct watcher *watcher)
{
    watch_leave(ws->watch);
    free_watcher(watcher);
}

void
watchers_give(struct watchers *ws, struct watcher *watcher, struct registry_entry *old,
              struct tls_session *tls)
{
    watcher->tls = tls;
    registry_replace(ws->registry, old, &watcher->entry);
    mbox_push(&ws->mbox, &watcher->message);
}

/* The types of all watchers together; the tick runs while there are any. */
static void
watchers_changed(struct watchers *ws)
{
    uint32_t types = 0;
    for (const struct watcher *w = ws->first; w != NULL; w = w->next) {
        types |= w->types;
    }
    watch_set_types(ws->watch, types);
    if (ws->first == NULL) {
        event_del(&ws->tick);
    } else if (!evtimer_pending(&ws->tick, NULL)) {
        struct timeval every = {.tv_usec = TICK_MS * 1000};
        must(event_add(&ws->tick, &every) == 0);
    }
}

static void
close_watcher(struct watcher *w, enum watch_reason reason)
{
    struct watchers *ws = w->owner;
    *(w->prev != NULL ? &w->prev->next : &ws->first) = w->next;
    if (w->next != NULL) {
        w->next->prev = w->prev;
    }
    event_del(&w->readable);
    event_del(&w->writable);
    watchers_changed(ws);
    watch_push_conn(watch_ring(ws->watch), WATCH_CONN_CLOSE, reason, w->fd, w->addr);
    registry_remove(ws->registry, &w->entry);
    tls_end(&w->tls);
    close(w->fd);
    log_write(LOG_DEBUG, "<%d watcher closed", w->fd);
    atomic_fetch_sub(ws->open_conns, 1);
    watch_leave(ws->watch);
    free_watcher(w);
}

static void
wait_for_room(struct watcher *w)
{
    w->is_blocked = true;
    must(event_add(&w->writable, NULL) == 0);
}

static bool
flush_by_tls(struct watcher *w)
{
    size_t sent;
    struct iovec run = {w->out.bytes + w->out.start, w->out.len};
    if (run.iov_len == 0 || w->is_blocked) {
        return true;
    }
    enum tls_io io = tls_send(w->tls, &w->owner->tls, &run, 1, &sent);
    watch_outbox_consume(&w->out, sent);
    if (io == TLS_EOF || io == TLS_BROKEN) {
        close_watcher(w, WATCH_REASON_ERROR);
        return false;
    }
    if (io == TLS_WANT_WRITE) {
        wait_for_room(w);
    }
    return true;
}

/* Sends what the socket takes. False: the watcher has gone. */
static bool
flush_watcher(struct watcher *w)
{
    if (w->tls != NULL) {
        return flush_by_tls(w);
    }
    while (w->out.len > 0 && !w->is_blocked) {
        ssize_t n = send(w->fd, w->out.bytes + w->out.start, w->out.len, MSG_NOSIGNAL);
        if (n >= 0) {
            watch_outbox_consume(&w->out, (size_t)n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            wait_for_room(w);
        } else if (errno != EINTR) {
            close_watcher(w, WATCH_REASON_ERROR);
            return false;
        }
    }
    return true;
}

/* No event tells of what the session has read ahead, so all of it is taken. */
static void
discard_by_tls(struct watcher *w)
{
    char discarded[DISCARD_BYTES];
    size_t got;
    bool has_more;
    enum tls_io io = TLS_MORE;
    for (int i = 0; i < DISCARDS_MAX && (io == TLS_OK || io == TLS_MORE); i++) {
        io = tls_recv(w->tls, &w->owner->tls, discarded, sizeof discarded, &got,
                      &has_more);
    }
    if (io == TLS_EOF || io == TLS_BROKEN) {
        close_watcher(w, io == TLS_EOF ? WATCH_REASON_NORMAL : WATCH_REASON_ERROR);
    }
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct watcher *w = arg;
    char discarded[DISCARD_BYTES];
    if (w->tls != NULL) {
        discard_by_tls(w);
        return;
    }
    ssize_t n = recv(fd, discarded, sizeof discarded, 0);
    if (n == 0) {
        close_watcher(w, WATCH_REASON_NORMAL);
    } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        close_watcher(w, WATCH_REASON_ERROR);
    }
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct watcher *w = arg;
    w->is_blocked = false;
    (void)flush_watcher(w);
}

/* The types are watched before the client reads its OK: it misses nothing of what it does
 * after that. */
static void
admit(struct watchers *ws, struct watcher *w)
{
    short what = EV_READ | EV_PERSIST;
    w->next = ws->first;
    if (ws->first != NULL) {
        ws->first->prev = w;
    }
    ws->first = w;
    must(event_assign(&w->readable, ws->base, w->fd, what, on_readable, w) == 0);
    must(event_assign(&w->writable, ws->base, w->fd, EV_WRITE, on_writable, w) == 0);
    w->since = clock_now();
    watchers_changed(ws);
    must(watch_outbox_put(&w->out, "OK\r\n", 4));
    if (event_add(&w->readable, NULL) != 0) {
        close_watcher(w, WATCH_REASON_ERROR);
        return;
    }
    (void)flush_watcher(w);
}

/* ---- the thread ----------------------------------------------------------------------- */

static void
deliver(void *ctx, uint32_t type, nsec_t at, const char *line, size_t len)
{
    struct watchers *ws = ctx;
    for (struct watcher *w = ws->first; w != NULL; w = w->next) {
        if ((w->types & type) != 0 && at >= w->since) {
            bool is_sent = watch_outbox_put(&w->out, line, len);
            ctr_add(is_sent ? &ws->watch->sent : &ws->watch->skipped, 1);
        }
    }
}

/* Lines are not sent before the whole pass is collected: a watcher that is slower than the
 * events skips some here, and the workers' rings are emptied whatever the watchers do. */
static void
pass(struct watchers *ws)
{
    nsec_t now = clock_now();
    watch_collect(ws->watch, now, clock_wall_offset(), deliver, ws);
    for (struct watcher *w = ws->first, *next; w != NULL; w = next) {
        next = w->next;
        (void)flush_watcher(w);
    }
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    pass(arg);
}

static void
on_message(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct watchers *ws = arg;
    mbox_clear(&ws->mbox);
    struct mbox_message *message = mbox_take(&ws->mbox);
    while (message != NULL) {
        struct watcher *w = OWNER_OF(message, struct watcher, message);
        message = message->next;
        admit(ws, w);
    }
    pass(ws);
    if (atomic_load(&ws->is_stopping)) {
        must(event_base_loopbreak(ws->base) == 0);
    }
}

static void *
thread_main(void *arg)
{
    struct watchers *ws = arg;
    PTHREAD_OK(pthread_setname_np(pthread_self(), "mc-watchers"));
    must(event_base_dispatch(ws->base) >= 0);
    while (ws->first != NULL) {
        close_watcher(ws->first, WATCH_REASON_SHUTDOWN);
    }
    return NULL;
}

static bool
create_base(struct watchers *ws)
{
    ws->base = loop_base();
    /* libevent allocates for the first timer of a base: now, not with the first watcher. */
    struct timeval every = {.tv_usec = TICK_MS * 1000};
    return ws->base != NULL &&
           event_assign(&ws->mbox_event, ws->base, ws->mbox.fd, EV_READ | EV_PERSIST,
                        on_message, ws) == 0 &&
           event_add(&ws->mbox_event, NULL) == 0 &&
           event_assign(&ws->tick, ws->base, -1, EV_PERSIST, on_tick, ws) == 0 &&
           event_add(&ws->tick, &every) == 0 && event_del(&ws->tick) == 0;
}

bool
watchers_start(struct watchers *ws, struct watch *watch, struct registry *registry,
               _Atomic unsigned *open_conns, const struct tls *tls)
{
    *ws =
        (struct watchers){.watch = watch, .registry = registry, .open_conns = open_conns};
    if (!tls_thread_init(&ws->tls, tls) || !mbox_init(&ws->mbox) || !create_base(ws)) {
        return false;
    }
    int rc = pthread_create(&ws->thread, NULL, thread_main, ws);
    errno = rc;
    return rc == 0;
}

void
watchers_stop(struct watchers *ws)
{
    atomic_store(&ws->is_stopping, true);
    mbox_wake(&ws->mbox);
    PTHREAD_OK(pthread_join(ws->thread, NULL));
    event_del(&ws->mbox_event);
    event_base_free(ws->base);
    mbox_fini(&ws->mbox);
    tls_thread_fini(&ws->tls);
}

void
watchers_wake(void *ctx)
{
    struct watchers *ws = ctx;
    mbox_wake(&ws->mbox);
}
