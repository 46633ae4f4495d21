/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/worker_pool.h"

#include <errno.h>
#include <time.h>

#include "base/await.h"
#include "base/log.h"
#include "net/stint.h"
#include "net/worker.h"
#include "net/worker_thread.h"
#include "serve/auth.h"

#define WORKER_ALIGN 64
#define DRAIN_SECONDS 4 /* for clients to take their replies at the end */
#define LOGIN_SECONDS 1 /* more, for libsasl2 to come back from a step */

void
worker_pool_init(struct worker_pool *c)
{
    must(sem_init(&c->ready, 0, 0) == 0);
    must(sem_init(&c->go, 0, 0) == 0);
    must(sem_init(&c->ended, 0, 0) == 0);
    c->started = 0;
}

void
worker_pool_fini(struct worker_pool *c)
{
    must(sem_destroy(&c->ready) == 0);
    must(sem_destroy(&c->go) == 0);
    must(sem_destroy(&c->ended) == 0);
}

bool
worker_pool_create(struct net_shared *shared)
{
    size_t bytes = shared->worker_count * sizeof *shared->workers;
    shared->workers = aligned_alloc(WORKER_ALIGN, bytes);
    if (shared->workers != NULL) {
        memset(shared->workers, 0, bytes);
    }
    shared->stints = stints_create(shared->worker_count);
    return shared->workers != NULL && shared->stints != NULL;
}

int
worker_pool_start(struct net_shared *shared)
{
    struct worker_pool *c = &shared->worker_pool;
    int error = 0;
    while (error == 0 && c->started < shared->worker_count) {
        if (worker_start(&shared->workers[c->started], c->started, shared)) {
            c->started++;
        } else {
            error = errno;
        }
    }
    for (unsigned i = 0; i < c->started; i++) {
        await(&c->ready);
    }
    return error;
}

bool
worker_pool_go(struct net_shared *shared)
{
    struct worker_pool *c = &shared->worker_pool;
    bool has_failed = false;
    for (unsigned i = 0; i < c->started; i++) {
        has_failed |= atomic_load(&shared->workers[i].has_failed);
        must(sem_post(&c->go) == 0);
    }
    return !has_failed;
}

/* False when they have not all ended by the monotonic time `until`. */
static bool
have_ended(struct worker_pool *c, const struct timespec *until)
{
    for (unsigned i = 0; i < c->started; i++) {
        if (!await_until(&c->ended, until)) {
            return false;
        }
    }
    return true;
}

static void
end_logins(struct net_shared *shared, const struct timespec *until)
{
    if (!auth_stop(shared->serve->auth, until)) {
        log_write(
            LOG_WARNING,
            "memcached: warning: libsasl2 does not answer a login, which is given up; is "
            "the server that it asks there?");
    }
}

void
worker_pool_stop(struct net_shared *shared)
{
    struct worker_pool *c = &shared->worker_pool;
    struct timespec until;
    must(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    until.tv_sec += DRAIN_SECONDS;
    /* no connection is given away from here on; one that is on its way arrives */
    atomic_store(&shared->has_stopped_moving, true);
    workers_order(shared->workers, c->started, ORDER_DRAIN);
    if (!have_ended(c, &until)) {
        workers_order(shared->workers, c->started, ORDER_STOP);
    }
    for (unsigned i = 0; i < c->started; i++) {
        PTHREAD_OK(pthread_join(shared->workers[i].thread, NULL));
    }
    until.tv_sec += LOGIN_SECONDS;
    end_logins(shared, &until); /* they have messages of the workers */
    for (unsigned i = 0; i < c->started; i++) {
        worker_fini(&shared->workers[i]);
    }
}
