/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The gauge in "stats qos": how much room there is. It counts from the start of the workers and
 * covers the last one or two seconds, however often it is read.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "place/threadstat.h"
#include "front/stats.h"
#include "front/stats_qos.h"

/* The time for which the worker wanted a CPU: polls and wake-ups are part of what requests cost.
 * A worker that polls busily always wants one; and a kernel may not tell. */
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
    struct headroom_mark mark = {.at = now, .busy_ns = busy_time_of(w)};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        mark.requests += ctr_get(&w->core.admission.limits.ctr[c].admitted);
    }
    return mark;
}

bool
stats_start(struct stats *st)
{
    nsec_t now = clock_now();
    st->windows = calloc(st->worker_count, sizeof *st->windows);
    for (unsigned i = 0; st->windows != NULL && i < st->worker_count; i++) {
        struct headroom_mark mark = mark_of(&st->workers[i], now);
        headroom_begin(&st->windows[i], &mark);
    }
    return st->windows != NULL;
}

void
stats_second(struct stats *st)
{
    nsec_t now = clock_now();
    for (unsigned i = 0; i < st->worker_count; i++) {
        struct headroom_mark mark = mark_of(&st->workers[i], now);
        PTHREAD_OK(pthread_mutex_lock(&st->lock)); /* the kernel is asked without it */
        headroom_tick(&st->windows[i], &mark);
        PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    }
}

static void
look(struct stats *st, struct headroom *each)
{
    nsec_t now = clock_now();
    for (unsigned i = 0; i < st->worker_count; i++) {
        struct headroom_mark mark = mark_of(&st->workers[i], now);
        PTHREAD_OK(pthread_mutex_lock(&st->lock)); /* likewise */
        each[i] = headroom_now(&st->windows[i], &mark);
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
stats_headroom_pct(struct stats *st)
{
    struct headroom sum = {0};
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    for (unsigned i = 0; st->windows != NULL && i < st->worker_count; i++) {
        const struct headroom_window *w = &st->windows[i];
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

void
stats_show_headroom(struct stats *st, struct sink *sink)
{
    struct headroom *each = calloc(st->worker_count, sizeof *each);
    if (each == NULL || st->windows == NULL) { /* no memory, or a start that fails */
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
