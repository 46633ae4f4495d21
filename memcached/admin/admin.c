/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/admin.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "admin/health.h"
#include "admin/http.h"
#include "admin/page.h"
#include "admin/recorder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mbox.h"
#include "front/settings.h"
#include "front/stats.h"
#include "net/loop.h"

/* All but view, wake and is_stopping belongs to the thread while it runs. */
struct admin {
    pthread_t thread;
    bool is_running;
    struct event_base *base;
    struct http *http;
    struct mbox wake;
    struct event on_wake, tick;
    _Atomic bool is_stopping;
    pthread_mutex_t lock; /* the view, and what it points at */
    struct admin_view view;
};

/* ---- the thread ----------------------------------------------------------------------- */

static void
handle(void *ctx, struct http_exchange *x)
{
    struct admin *a = ctx;
    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    admin_answer(&a->view, x);
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct admin *a = arg;
    (void)fd;
    (void)what;
    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    if (a->view.state == ADMIN_SERVING) {
        admin_second(&a->view);
    }
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
}

static void
on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct admin *a = arg;
    (void)fd;
    (void)what;
    mbox_clear(&a->wake);
    if (atomic_load(&a->is_stopping)) {
        must(event_base_loopbreak(a->base) == 0);
    }
}

static void *
thread_main(void *arg)
{
    struct admin *a = arg;
    PTHREAD_OK(pthread_setname_np(pthread_self(), "mc-admin"));
    must(event_base_dispatch(a->base) >= 0);
    return NULL;
}

/* ---- life ----------------------------------------------------------------------------- */

static bool
create_base(struct admin *a)
{
    struct timeval second = {.tv_sec = 1};
    a->base = loop_base();
    return a->base != NULL &&
           event_assign(&a->on_wake, a->base, a->wake.fd, EV_READ | EV_PERSIST, on_wake,
                        a) == 0 &&
           event_add(&a->on_wake, NULL) == 0 &&
           event_assign(&a->tick, a->base, -1, EV_PERSIST, on_tick, a) == 0 &&
           event_add(&a->tick, &second) == 0;
}

/* Signals are the main thread's, which has not blocked them yet. */
static bool
start_thread(struct admin *a)
{
    sigset_t all, before;
    sigfillset(&all);
    PTHREAD_OK(pthread_sigmask(SIG_BLOCK, &all, &before));
    a->is_running = pthread_create(&a->thread, NULL, thread_main, a) == 0;
    PTHREAD_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
    return a->is_running;
}

struct admin *
admin_open(const struct settings *s, char *err, size_t err_len)
{
    struct admin *a = calloc(1, sizeof *a);
    if (a == NULL) {
        snprintf(err, err_len, "out of memory");
        return NULL;
    }
    PTHREAD_OK(pthread_mutex_init(&a->lock, NULL));
    if (!mbox_init(&a->wake)) {
        a->wake.fd = -1;
    }
    if (a->wake.fd < 0 || !create_base(a)) {
        snprintf(err, err_len, "no memory or descriptors for the thread");
    } else if ((a->http = http_open(a->base, s->admin, s->listen.socket_mode, handle, a,
                                    err, err_len)) != NULL &&
               !start_thread(a)) {
        snprintf(err, err_len, "can't create the thread");
    }
    if (!a->is_running) {
        admin_close(&a);
    } else if (http_is_remote(a->http)) {
        log_write(LOG_WARNING,
                  "memcached: warning: --admin=%s: anything that can reach it can read "
                  "statistics; 127.0.0.1:PORT or unix:PATH is for this machine alone",
                  s->admin);
    }
    return a;
}

bool
admin_serve(struct admin *a, struct stats *st)
{
    if (a == NULL) {
        return true;
    }
    struct health *health = health_create(st->worker_count, clock_rel(clock_now()));
    struct recorder *recorder = recorder_create(st);
    if (health == NULL || recorder == NULL) {
        free(health);
        recorder_destroy(&recorder);
        return false;
    }
    PTHREAD_OK(pthread_mutex_lock(&a->lock));
    a->view = (struct admin_view){ADMIN_SERVING, st, health, recorder};
    PTHREAD_OK(pthread_mutex_unlock(&a->lock));
    return true;
}

void
admin_leave(struct admin *a)
{
    if (a != NULL) {
        PTHREAD_OK(pthread_mutex_lock(&a->lock));
        free(a->view.health);
        recorder_destroy(&a->view.recorder);
        a->view = (struct admin_view){.state = ADMIN_STOPPING};
        PTHREAD_OK(pthread_mutex_unlock(&a->lock));
    }
}

void
admin_close(struct admin **a)
{
    struct admin *self = *a;
    *a = NULL;
    if (self == NULL) {
        return;
    }
    if (self->is_running) {
        atomic_store(&self->is_stopping, true);
        mbox_wake(&self->wake);
        PTHREAD_OK(pthread_join(self->thread, NULL));
    }
    if (self->http != NULL) {
        http_close(&self->http);
    }
    if (self->base != NULL) {
        event_base_free(self->base);
    }
    if (self->wake.fd >= 0) {
        mbox_fini(&self->wake);
    }
    PTHREAD_OK(pthread_mutex_destroy(&self->lock));
    free(self->view.health);
    recorder_destroy(&self->view.recorder);
    free(self);
}
