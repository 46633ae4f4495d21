/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/accept.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/owner_of.h"
#include "base/timer.h"
#include "net/conn_open.h"
#include "net/listen.h"
#include "net/worker.h"
#include "place/pinner.h"
#include "sock/addr.h"
#include "sock/incoming.h"

#define ACCEPTS_PER_EVENT 64
/* How often a paused acceptor looks whether it may go on. */
#define RESUME_NS (10 * NSEC_PER_MSEC)

static const char refusal[] = "ERROR Too many open connections\r\n";

/* ---- places under the limit ----------------------------------------------------------- */

static bool
is_full(const struct listen *l)
{
    return atomic_load_explicit(&l->shared->open_conns, memory_order_relaxed) >=
           l->conf.max_conns;
}

/* Several threads may accept: the last place goes to one of them. */
static bool
take_place(struct listen *l)
{
    unsigned open = atomic_load_explicit(&l->shared->open_conns, memory_order_relaxed);
    while (open < l->conf.max_conns) {
        if (atomic_compare_exchange_weak(&l->shared->open_conns, &open, open + 1)) {
            return true;
        }
    }
    return false;
}

static void
resume_later(struct acceptor *a)
{
    timer_set(a->resume.fd, clock_now() + RESUME_NS);
}

/* Waits for connections. False: no memory. */
static bool
watch_listeners(struct acceptor *a)
{
    a->is_watching = true;
    for (struct listener *one = a->listeners; one != NULL; one = one->next) {
        if (!one->is_shut) {
            one->is_watched = poller_add(a->poller, &one->source, POLLER_READ);
            a->is_watching = a->is_watching && one->is_watched;
        }
    }
    return a->is_watching;
}

static void
forget_listener(struct listener *one)
{
    if (one->is_watched) {
        poller_remove(one->acceptor->poller, &one->source);
        one->is_watched = false;
    }
}

static void
forget_listeners(struct acceptor *a)
{
    for (struct listener *one = a->listeners; one != NULL; one = one->next) {
        forget_listener(one);
    }
    a->is_watching = false;
}

/* What statistics tell is the time in which at least one acceptor waited. */
static void
note_pause(struct listen *l)
{
    if (atomic_fetch_add(&l->paused, 1) == 0) {
        atomic_store(&l->paused_at, clock_now());
        ctr_add_shared(&l->disabled_times, 1);
    }
}

static void
note_resume(struct listen *l)
{
    nsec_t since = atomic_load(&l->paused_at);
    if (atomic_fetch_sub(&l->paused, 1) == 1) {
        nsec_t now = clock_now();
        ctr_add_shared(&l->disabled_us, now > since ? (now - since) / NSEC_PER_USEC : 0);
    }
}

static void
pause_accepting(struct acceptor *a)
{
    forget_listeners(a);
    if (!a->is_starved) { /* else it is noted */
        note_pause(a->listen);
    }
    resume_later(a);
}

static void
end_starvation(struct acceptor *a)
{
    if (a->is_starved) {
        a->is_starved = false;
        note_resume(a->listen);
    }
}

/* ---- dealing out ---------------------------------------------------------------------- */

static void
reject(struct listen *l, int fd)
{
    ctr_add_shared(&l->rejected, 1); /* before the client can ask */
    /* A full socket buffer on a fresh connection cannot happen; a vanished peer can. */
    if (send(fd, refusal, sizeof refusal - 1, MSG_NOSIGNAL) < 0) {
        log_write(LOG_DEBUG, "<%d refused connection went away: %s", fd, strerror(errno));
    }
    close(fd);
}

/* A worker that is pinned elsewhere takes its listeners along, in its own thread. */
static void
follow_worker(const struct acceptor *a)
{
    const struct steer_map *map = &a->listen->shared->steer;
    for (const struct listener *one = a->listeners; one != NULL; one = one->next) {
        if (!reuseport_move(one->source.fd, a->listen->kind, map->cpus, map->count,
                            a->self->index)) {
            static struct log_rate rate;
            log_write_limited(LOG_WARNING, &rate, clock_now(),
                              "memcached: warning: a listener could not follow its "
                              "worker: %s",
                              strerror(errno));
        }
    }
}

static void
follow_pinning(struct acceptor *a)
{
    struct net_shared *shared = a->listen->shared;
    net_shared_map(shared);
    int cpu = a->self != NULL ? pinner_cpu(shared->pinner, a->self->index) : a->cpu;
    if (cpu != a->cpu) {
        a->cpu = cpu;
        follow_worker(a);
    }
}

/* --steer=napi has no effect without receive queues: a line in the log. */
static unsigned
queue_of(int fd)
{
    static _Atomic bool is_reported;
    unsigned id = incoming_queue(fd);
    if (id == 0 && !atomic_exchange(&is_reported, true)) {
        log_write(LOG_WARNING,
                  "memcached: warning: the kernel names no receive queue (NAPI id) of a "
                  "connection, as over loopback; such go to the emptier of two workers");
    }
    return id;
}

static unsigned
choose(struct acceptor *a, const struct handoff *handoff)
{
    follow_pinning(a);
    int fd = handoff->fd;
    bool is_local = handoff->peer.addr.any.sa_family == AF_UNIX;
    struct steer_hint hint = {.cpu = -1, .given = -1};
    if (a->steer.mode == STEER_NAPI && !is_local) {
        hint.napi = queue_of(fd);
    }
    if (a->steer.mode != STEER_RR && a->steer.mode != STEER_P2C) {
        hint.cpu = incoming_cpu(fd);
    }
    if (a->self != NULL) {
        hint.given = (int)a->self->index;
    }
    return steer_pick(&a->steer, &hint, a->listen->shared->loads);
}

/* The connection has a place under the limit. */
static void
deal(struct acceptor *a, struct handoff *handoff)
{
    struct listen *l = a->listen;
    struct worker *w = &l->workers[choose(a, handoff)];
    ctr_add_shared(&l->shared->total_conns, 1);
    worker_expect(w);
    if (w == a->self) {
        conn_create(w, handoff);
        free(handoff);
    } else {
        worker_give(w, handoff);
    }
}

/* ---- accepting ------------------------------------------------------------------------ */

static bool
may_control(const struct listener *from, const struct peer *peer)
{
    enum listen_control control = from->acceptor->listen->conf.control;
    return control == LISTEN_CONTROL_ANY || from->marks.has_control ||
           (control == LISTEN_CONTROL_LOCAL && addr_is_local(peer));
}

static struct handoff *
describe(const struct listener *from, int fd, const struct sockaddr *addr, socklen_t len)
{
    struct handoff *handoff = malloc(sizeof *handoff);
    if (handoff != NULL) {
        *handoff = (struct handoff){
            .fd = fd,
            .from = from,
            .peer = addr_peer(addr, len, from->acceptor->listen->shared->peer_seed),
        };
        handoff->may_control = may_control(from, &handoff->peer);
        handoff->is_local = addr_is_local(&handoff->peer);
    }
    return handoff;
}

/* False: it waits for a place, and nothing more is accepted before it has one. */
static bool
welcome(struct acceptor *a, struct handoff *handoff)
{
    struct listen *l = a->listen;
    if (take_place(l)) {
        deal(a, handoff);
        return true;
    }
    if (l->conf.rejects_fast) {
        reject(l, handoff->fd);
        free(handoff);
        return true;
    }
    a->held = handoff;
    pause_accepting(a);
    return false;
}

/* True when another connection may be waiting. */
static bool
accept_one(struct listener *from)
{
    struct acceptor *a = from->acceptor;
    struct listen *l = a->listen;
    if (!l->conf.rejects_fast && is_full(l)) {
        pause_accepting(a);
        return false;
    }
    struct sockaddr_storage addr = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof addr;
    int fd = accept4(from->source.fd, (struct sockaddr *)&addr, &len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        end_starvation(a);
        struct handoff *handoff = describe(from, fd, (struct sockaddr *)&addr, len);
        if (handoff == NULL) {
            reject(l, fd);
            return true;
        }
        return welcome(a, handoff);
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return false;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        static struct log_rate rate;
        log_write_limited(LOG_WARNING, &rate, clock_now(),
                          "memcached: warning: no connection can be accepted: %s%s",
                          strerror(errno),
                          errno == EMFILE || errno == ENFILE
                              ? "; allow more files (ulimit -n, LimitNOFILE=) or "
                                "fewer connections (-c)"
                              : "");
        pause_accepting(a);
        a->is_starved = true;
        return false;
    }
    if (errno == EINVAL) { /* it would be ready for ever */
        log_write(LOG_WARNING,
                  "memcached: warning: %s was shut down by a process that shares it; no "
                  "more connections are accepted there",
                  from->entry.addr);
        from->is_shut = true;
        forget_listener(from);
        return false;
    }
    return true; /* this one went away before it was accepted */
}

static void
on_connection(struct poll_source *source, unsigned ready)
{
    (void)ready;
    struct listener *from = OWNER_OF(source, struct listener, source);
    if (from->acceptor->self != NULL) {
        core_wake(&from->acceptor->self->core);
    }
    for (int i = 0; i < ACCEPTS_PER_EVENT && accept_one(from); i++) {
    }
}

/* There may be a descriptor now: only accepting tells. */
static void
look_again(struct acceptor *a)
{
    for (struct listener *one = a->listeners; one != NULL && a->is_watching;
         one = one->next) {
        if (one->is_watched) {
            on_connection(&one->source, POLLER_READ);
        }
    }
    if (a->is_watching) { /* there is, or no client waits */
        end_starvation(a);
    }
}

static void
on_resume(struct poll_source *source, unsigned ready)
{
    (void)ready;
    struct acceptor *a = OWNER_OF(source, struct acceptor, resume);
    if (!timer_take(source->fd)) {
        return;
    }
    bool has_to_wait = is_full(a->listen) && !a->listen->conf.rejects_fast;
    if (has_to_wait || (a->held != NULL && !take_place(a->listen))) {
        resume_later(a);
        return;
    }
    if (!watch_listeners(a)) {
        forget_listeners(a); /* the kernel has no memory now: later */
        if (a->held != NULL) {
            atomic_fetch_sub(&a->listen->shared->open_conns, 1);
        }
        resume_later(a);
        return;
    }
    if (!a->is_starved) {
        note_resume(a->listen);
    }
    if (a->held != NULL) {
        struct handoff *held = a->held;
        a->held = NULL;
        deal(a, held);
    }
    if (a->is_starved) {
        look_again(a);
    }
}

/* ---- life ----------------------------------------------------------------------------- */

bool
acceptor_start(struct acceptor *a, struct poller *poller, struct worker *self)
{
    a->poller = poller;
    a->self = self;
    a->cpu = self != NULL ? pinner_cpu(self->shared->pinner, self->index) : -1;
    a->resume = (struct poll_source){.fd = timer_open(), .on_ready = on_resume};
    if (a->resume.fd < 0) {
        return false;
    }
    for (struct listener *one = a->listeners; one != NULL; one = one->next) {
        one->source.on_ready = on_connection;
    }
    return poller_add(poller, &a->resume, POLLER_READ) && watch_listeners(a);
}

void
acceptor_close(struct acceptor *a)
{
    if (a->poller != NULL) {
        forget_listeners(a);
        if (a->resume.fd >= 0) {
            poller_remove(a->poller, &a->resume);
            close(a->resume.fd);
        }
        a->poller = NULL;
    }
    for (struct listener *one = a->listeners; one != NULL; one = one->next) {
        if (one->source.fd >= 0) {
            registry_remove(&a->listen->shared->registry, &one->entry);
            close(one->source.fd);
            one->source.fd = -1;
        }
    }
    if (a->held != NULL) {
        close(a->held->fd);
        free(a->held);
        a->held = NULL;
    }
}

bool
accept_start(struct listen *l, struct poller *poller, struct worker *workers)
{
    l->workers = workers;
    if (!acceptor_start(&l->main, poller, NULL)) {
        return false;
    }
    for (unsigned i = 0; l->members != NULL && i < l->shared->worker_count; i++) {
        workers[i].acceptor = &l->members[i];
        worker_order(&workers[i], ORDER_ACCEPT);
    }
    return true;
}

void
accept_stop(struct listen *l)
{
    if (l->is_closed) {
        return;
    }
    l->is_closed = true;
    atomic_store_explicit(&l->is_open, false, memory_order_relaxed);
    acceptor_close(&l->main);
    if (l->socket_file.path != NULL) {
        unix_remove(&l->socket_file);
    }
}

void
accept_fini(struct listen *l)
{
    accept_stop(l);
    for (unsigned i = 0; l->members != NULL && i < l->shared->worker_count; i++) {
        acceptor_close(&l->members[i]);
    }
    listen_fini(l);
}
