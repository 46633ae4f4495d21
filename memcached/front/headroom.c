/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The gauge in "stats qos": how much room there is. It counts from the start of the workers and
 * covers the last one or two seconds, however often it is read.
 */
#include <inttypes.h>

#include "front/front.h"
#include "qos/headroom.h"
#include "place/threadstat.h"

struct state {
    struct headroom_window *windows; /* of the workers; under st->lock */
};

static struct headroom_window *
windows_of(const struct stats *st)
{
    const struct state *own = front_state(st->settings, &front_headroom);
    return own->windows;
}

/* The time for which the worker wanted a CPU: polls and wake-ups are part of what requests cost.
 * A worker that polls busily always wants one; and a kernel may not report it. */
static nsec_t
busy_time_of(const struct worker *w)
{
    struct threadstat stat = {0};
    if (w->shared->busy_poll.usecs == 0) {
        threadstat_read_times(atomic_load(&w->tid), &stat);
    }
    if (stat.run_ns > 0) {
        return stat.run_ns + stat.wait_ns;
    }
    atomic_store_explicit(&w->shared->core.times_passes, true, memory_order_relaxed);
    return ctr_get(&w->core.ctr.busy_ns);
}

static struct headroom_mark
mark_of(const struct worker *w, nsec_t now)
{
    return (struct headroom_mark){.at = now,
                                  .busy_ns = busy_time_of(w),
                                  .requests = admission_answered(&w->core.admission)};
}

static bool
start(struct stats *st)
{
    struct state *own = front_state(st->settings, &front_headroom);
    nsec_t now = clock_now();
    own->windows = calloc(st->worker_count, sizeof *own->windows);
    for (unsigned i = 0; own->windows != NULL && i < st->worker_count; i++) {
        struct headroom_mark mark = mark_of(&st->workers[i], now);
        headroom_begin(&own->windows[i], &mark);
    }
    return own->windows != NULL;
}

static void
second(struct stats *st)
{
    struct headroom_window *windows = windows_of(st);
    nsec_t now = clock_now();
    for (unsigned i = 0; i < st->worker_count; i++) {
        struct headroom_mark mark = mark_of(&st->workers[i], now);
        PTHREAD_OK(pthread_mutex_lock(&st->lock)); /* the kernel is asked without it */
        headroom_tick(&windows[i], &mark);
        PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    }
}

static void
stop(struct stats *st)
{
    free(windows_of(st));
}

static void
look(struct stats *st, struct headroom *each)
{
    struct headroom_window *windows = windows_of(st);
    nsec_t now = clock_now();
    for (unsigned i = 0; i < st->worker_count; i++) {
        struct headroom_mark mark = mark_of(&st->workers[i], now);
        PTHREAD_OK(pthread_mutex_lock(&st->lock)); /* likewise */
        each[i] = headroom_now(&windows[i], &mark);
        PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    }
}

static void
show_all(struct sink *sink, const struct headroom *each, unsigned count)
{
    struct headroom sum = {0};
    for (unsigned i = 0; i < count; i++) {
        headroom_add(&sum, &each[i]);
    }
    sink_statf(sink, "qos_rate", "%.0f", sum.rate);
    sink_statf(sink, "qos_capacity_now", "%.0f", sum.capacity);
    sink_statf(sink, "qos_utilisation_pct", "%.1f", 100 * sum.utilisation);
    sink_statf(sink, "qos_headroom_pct", "%.1f", 100 - 100 * sum.utilisation);
    sink_statf(sink, "qos_predicted_p95_us", "%.1f", sum.p95_us);
}

double
headroom_pct(struct stats *st)
{
    const struct headroom_window *windows = windows_of(st);
    struct headroom sum = {0};
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    for (unsigned i = 0; windows != NULL && i < st->worker_count; i++) {
        const struct headroom_window *w = &windows[i];
        if (w->last.at > w->before.at) {
            struct headroom one = headroom_between(&w->before, &w->last);
            headroom_add(&sum, &one);
        }
    }
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    return sum.workers > 0 ? 100 - 100 * sum.utilisation : -1;
}

static void
show_worker(struct sink *sink, unsigned i, const struct headroom *h)
{
    char prefix[24];
    snprintf(prefix, sizeof prefix, "qos_worker_%u_", i);
    sink_stat_of(sink, prefix, "capacity", "%.0f", h->capacity);
    sink_stat_of(sink, prefix, "utilisation_pct", "%.1f", 100 * h->utilisation);
}

static void
show(struct stats *st, struct sink *sink)
{
    struct headroom *each = calloc(st->worker_count, sizeof *each);
    if (each == NULL || windows_of(st) == NULL) { /* no memory, or a start that fails */
        sink->has_failed |= each == NULL;
        free(each);
        return;
    }
    look(st, each);
    show_all(sink, each, st->worker_count);
    for (unsigned i = 0; i < st->worker_count; i++) {
        show_worker(sink, i, &each[i]);
    }
    free(each);
}

const struct front front_headroom = {.state_bytes = sizeof(struct state),
                                     .start = start,
                                     .second = second,
                                     .stop = stop,
                                     .show = show};
