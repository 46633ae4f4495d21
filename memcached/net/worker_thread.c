/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/worker_thread.h"

#include <errno.h>
#include <unistd.h>

#include "base/await.h"
#include "base/log.h"
#include "base/owner_of.h"
#include "base/timer.h"
#include "net/accept.h"
#include "net/conn.h"
#include "net/conn_open.h"
#include "net/idle.h"
#include "net/migrate.h"
#include "net/stint.h"
#include "net/udp.h"
#include "net/worker.h"
#include "place/pinner.h"
#include "serve/watch.h"

/* ---- wake-ups for tokens --------------------------------------------------------------- */

static void
on_wakeup(struct poll_source *timer, unsigned ready)
{
    (void)ready;
    struct worker *w = OWNER_OF(timer, struct worker, wakeup.timer);
    if (timer_take(timer->fd)) {
        w->wakeup.at = 0;
        admission_wake(&w->core);
    }
}

/* Before the worker polls. */
static void
set_wakeup(struct worker *w)
{
    const struct admission *a = &w->core.admission;
    if (unlikely(a->is_armed) && w->wakeup.at != a->wake_at) {
        w->wakeup.at = a->wake_at;
        timer_set(w->wakeup.timer.fd, a->wake_at);
    }
}

/* ---- mailbox -------------------------------------------------------------------------- */

static void
stop_accepting(struct worker *w)
{
    if (w->acceptor != NULL) {
        acceptor_close(w->acceptor);
    }
}

static void
start_draining(struct worker *w)
{
    core_drain(&w->core);
    stop_accepting(w);
    udp_drain(w);
    for (struct conn *c = w->conns.first; c != NULL; c = c->next) {
        conn_drain(c);
    }
}

static void
take_message(struct worker *w, struct worker_message *message)
{
    switch (message->kind) {
    case MESSAGE_NEW:
        conn_create(w, OWNER_OF(message, struct handoff, message));
        free(OWNER_OF(message, struct handoff, message));
        break;
    case MESSAGE_MOVED:
        migrate_take(w, OWNER_OF(message, struct conn, message));
        break;
    case MESSAGE_BACK:
        conn_resume(OWNER_OF(message, struct conn, message));
        break;
    }
}

/* In this order: the wake-up, so that nothing set from here on is missed; the orders; the
 * messages, so that a connection handed over before an order falls under it. */
static void
on_message(struct poll_source *source, unsigned ready)
{
    (void)ready;
    struct worker *w = OWNER_OF(source, struct worker, mbox_source);
    core_wake(&w->core);
    mbox_clear(&w->mbox);
    unsigned orders = atomic_exchange(&w->orders, 0);
    struct mbox_message *link = mbox_take(&w->mbox);
    while (link != NULL) {
        struct worker_message *message = OWNER_OF(link, struct worker_message, message);
        link = link->next;
        take_message(w, message);
    }
    if (orders & ORDER_RELIMIT) {
        tenants_apply(&w->core);
        admission_look_again(&w->core);
    }
    if ((orders & ORDER_ACCEPT) && !acceptor_start(w->acceptor, &w->poller, w)) {
        log_write(LOG_WARNING,
                  "memcached: warning: no memory for the listeners of a worker");
        acceptor_close(w->acceptor); /* the others get its connections */
    }
    if (orders & ORDER_GIVE) {
        migrate_execute(w);
    } else if (orders & ORDER_WATCH) {
        migrate_look(w);
    } else if (orders & ORDER_HOME) {
        migrate_home(w);
    }
    if (orders & ORDER_DRAIN) {
        start_draining(w);
    }
    w->is_done |= (orders & ORDER_STOP) != 0;
}

/* ---- the thread ----------------------------------------------------------------------- */

static void
destroy_closed(struct worker *w)
{
    while (w->conns.closed != NULL) {
        struct conn *c = w->conns.closed;
        w->conns.closed = c->next_closed;
        conn_destroy(c);
    }
}

static void
run_loop(struct worker *w)
{
    struct stint *stints = w->shared->stints;
    while (!w->is_done) {
        bool has_work = core_begin_pass(&w->core);
        set_wakeup(w);
        poller_wait(&w->poller, !has_work);
        core_serve(&w->core);
        destroy_closed(w);
        core_end_pass(&w->core);
        if (stint_is_long(&stints[w->index], w->core.now, !has_work) &&
            stint_end(stints, w->shared->worker_count, w->index)) {
            core_gave_way(&w->core);
        }
        w->is_done |= w->core.is_draining && w->conns.first == NULL &&
                      udp_is_drained(w) && atomic_load(&w->migrate.arriving) == 0;
    }
}

static void
close_all(struct worker *w)
{
    stop_accepting(w);
    udp_stop(w);
    for (struct conn *c = w->conns.first; c != NULL; c = c->next) {
        if (c->closing == CLOSE_NONE) {
            conn_close(c, CLOSE_SHUTDOWN);
        }
    }
    destroy_closed(w);
}

/* What befalls one worker befalls them all: the first one says it. */
static void
poll_busily(struct worker *w)
{
    const struct busypoll *b = &w->shared->busy_poll;
    int error = busypoll_apply(b, w->poller.fd);
    atomic_store(&w->busy_poll_error, error);
    if (error != 0 && w->index == 0) {
        log_write(LOG_WARNING, "memcached: warning: %s is not set: %s",
                  b->prefers ? "--irq-suspend" : "--busy-poll",
                  error == ENOTTY ? "it needs Linux 6.9 or later" : strerror(error));
    }
}

static bool
start_serving(struct worker *w)
{
    w->mbox_source = (struct poll_source){.fd = w->mbox.fd, .on_ready = on_message};
    w->space = calloc(1, sizeof *w->space);
    if (w->space == NULL || !poller_open(&w->poller)) {
        return false;
    }
    stint_start(&w->shared->stints[w->index], w->poller.fd);
    return poller_add(&w->poller, &w->mbox_source, POLLER_READ) &&
           poller_add(&w->poller, &w->wakeup.timer, POLLER_READ);
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    char name[16];
    snprintf(name, sizeof name, "mc-worker %u", w->index % 1000);
    PTHREAD_OK(pthread_setname_np(pthread_self(), name));
    /* Before anything is allocated: first touch then gives local memory. */
    (void)!pinner_join(w->shared->pinner, w->index); /* told when all have tried */
    atomic_store(&w->tid, gettid());
    core_start(&w->core, watch_ring(w->shared->watch));
    bool can_serve = start_serving(w);
    if (can_serve) {
        poll_busily(w);
    }
    bool is_able = can_serve && idle_start(w) && udp_start(w);
    atomic_store(&w->has_failed, !is_able);
    must(sem_post(&w->shared->worker_pool.ready) == 0);
    await(&w->shared->worker_pool
               .go); /* a datagram may ask for statistics of all workers */
    if (is_able) {
        run_loop(w);
        close_all(w);
        core_read_clock(&w->core);
        admission_rest(&w->core);
    }
    idle_stop(w);
    udp_stop(w);
    stint_stop(&w->shared->stints[w->index]);
    poller_close(&w->poller);
    free(w->space);
    core_stop(&w->core);
    must(sem_post(&w->shared->worker_pool.ended) == 0);
    return NULL;
}

/* What worker_start has made but for the mailbox; all of it, or a part. */
static void
free_parts(struct worker *w)
{
    if (w->wakeup.timer.fd >= 0) {
        close(w->wakeup.timer.fd);
    }
    core_fini(&w->core);
    tls_thread_fini(&w->tls);
}

bool
worker_start(struct worker *w, unsigned index, struct net_shared *shared)
{
    *w =
        (struct worker){.index = index,
                        .shared = shared,
                        .rx = {.reads_to_check = READS_PER_RX_CHECK},
                        .poller = {.fd = -1},
                        .idle = {.fd = -1},
                        .wakeup = {.timer = {.fd = timer_open(), .on_ready = on_wakeup}}};
    struct env env = {.store = shared->store,
                      .conf = shared->serve,
                      .hooks = shared->hooks,
                      .ctr = &w->ctr,
                      .back = {.to = &w->mbox},
                      .watch = shared->watch,
                      .prefixes = shared->prefixes};
    bool has_all = core_init(&w->core, &shared->core, clock_now, &env,
                             shared->buffer_bytes / shared->worker_count) &&
                   w->wakeup.timer.fd >= 0 && tls_thread_init(&w->tls, shared->tls) &&
                   mbox_init(&w->mbox);
    int rc = has_all ? pthread_create(&w->thread, NULL, worker_main, w) : errno;
    if (has_all && rc == 0) {
        return true;
    }
    if (has_all) {
        mbox_fini(&w->mbox);
    }
    free_parts(w);
    errno = rc;
    return false;
}

/* Connections that were handed over too late to be served, or closed while another thread worked for
 * them. */
static void
drop_messages(struct worker *w)
{
    struct mbox_message *link = mbox_take(&w->mbox);
    while (link != NULL) {
        struct worker_message *message = OWNER_OF(link, struct worker_message, message);
        link = link->next;
        switch (message->kind) {
        case MESSAGE_NEW:
            close(OWNER_OF(message, struct handoff, message)->fd);
            free(OWNER_OF(message, struct handoff, message));
            break;
        case MESSAGE_MOVED:
            conn_drop(OWNER_OF(message, struct conn, message), w);
            break;
        case MESSAGE_BACK:
            conn_destroy(OWNER_OF(message, struct conn, message));
            break;
        }
    }
}

void
worker_fini(struct worker *w)
{
    drop_messages(w);
    mbox_fini(&w->mbox);
    free_parts(w);
}
