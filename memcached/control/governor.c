/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "control/governor.h"

#include <errno.h>
#include <event2/event.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "net/worker.h"

static nsec_t
cpu_time(void)
{
    struct timespec ts;
    must(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0);
    return (nsec_t)ts.tv_sec * NSEC_PER_SEC + (nsec_t)ts.tv_nsec;
}

static uint64_t
count_admitted(const struct net_shared *shared)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < shared->worker_count; i++) {
        sum += limiter_tokens(&shared->workers[i].core.admission.limits);
    }
    return sum;
}

static void
apply(struct net_shared *shared, uint64_t rate)
{
    limiter_set_ceiling(&shared->core.limiter, rate, clock_now());
    workers_order(shared->workers, shared->worker_count, ORDER_RELIMIT);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    struct governor *g = arg;
    PTHREAD_OK(pthread_mutex_lock(&g->lock));
    uint64_t before = g->share.given;
    uint64_t rate =
        cpushare_step(&g->share, clock_now(), cpu_time(), count_admitted(g->shared));
    if (g->share.percent != 0 && rate != before) {
        apply(g->shared, rate);
    }
    PTHREAD_OK(pthread_mutex_unlock(&g->lock));
}

static void
on_change(evutil_socket_t fd, short what, void *arg)
{
    (void)what;
    struct governor *g = arg;
    struct timeval period = {.tv_usec = CPUSHARE_PERIOD / NSEC_PER_USEC};
    eventfd_t ignored;
    if (eventfd_read(fd, &ignored) != 0) {
        must(errno == EAGAIN || errno == EINTR);
        return;
    }
    uint64_t rate;
    bool wants_ticks = governor_get(g, &rate) != 0;
    if (wants_ticks != g->ticks) {
        must(wants_ticks ? event_add(&g->tick, &period) == 0 : event_del(&g->tick) == 0);
        g->ticks = wants_ticks;
    }
}

bool
governor_init(struct governor *g, struct net_shared *shared, unsigned percent)
{
    *g = (struct governor){.shared = shared};
    PTHREAD_OK(pthread_mutex_init(&g->lock, NULL));
    cpushare_set(&g->share, percent);
    /* Counts as changed, so that it begins to tick. */
    g->fd = eventfd(percent != 0, EFD_NONBLOCK | EFD_CLOEXEC);
    return g->fd >= 0;
}

void
governor_fini(struct governor *g)
{
    if (g->fd >= 0) {
        close(g->fd);
    }
    PTHREAD_OK(pthread_mutex_destroy(&g->lock));
}

bool
governor_start(struct governor *g, struct event_base *base)
{
    /* libevent allocates for the first timer of a base: now, not when a share is set. */
    struct timeval period = {.tv_usec = CPUSHARE_PERIOD / NSEC_PER_USEC};
    must(event_assign(&g->tick, base, -1, EV_PERSIST, on_tick, g) == 0);
    must(event_assign(&g->change, base, g->fd, EV_READ | EV_PERSIST, on_change, g) == 0);
    return event_add(&g->change, NULL) == 0 && event_add(&g->tick, &period) == 0 &&
           event_del(&g->tick) == 0;
}

void
governor_stop(struct governor *g)
{
    event_del(&g->change);
    event_del(&g->tick);
}

void
governor_set(struct governor *g, unsigned percent)
{
    PTHREAD_OK(pthread_mutex_lock(&g->lock));
    cpushare_set(&g->share, percent);
    if (percent == 0) {
        apply(g->shared, 0);
    }
    PTHREAD_OK(pthread_mutex_unlock(&g->lock));
    must(eventfd_write(g->fd, 1) == 0);
}

unsigned
governor_get(struct governor *g, uint64_t *rate)
{
    PTHREAD_OK(pthread_mutex_lock(&g->lock));
    unsigned percent = g->share.percent;
    *rate = g->share.given;
    PTHREAD_OK(pthread_mutex_unlock(&g->lock));
    return percent;
}
