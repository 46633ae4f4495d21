/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The gauge in "stats qos": how much room there is. It covers the time since the look before,
 * or the one before that when that is less than a second ago. The first look begins to count.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "qos/threadstat.h"
#include "stats.h"
#include "stats_qos.h"

#define LOOK_LEAST NSEC_PER_SEC

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
    atomic_store_explicit(&w->shared->times_passes, true, memory_order_relaxed);
    return ctr_get(&w->time.busy_ns);
}

static struct headroom_mark
mark_of(const struct worker *w, nsec_t now)
{
    struct headroom_mark mark = {.at = now, .busy_ns = busy_time_of(w)};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        mark.requests += ctr_get(&w->limited.desk.ctr[c].admitted);
    }
    return mark;
}

static struct headroom
look(struct stats_look *look, const struct worker *w, nsec_t now)
{
    struct headroom_mark mark = mark_of(w, now);
    if (look->last.at == 0 || now - look->last.at >= LOOK_LEAST) {
        look->before = look->last;
        look->last = mark;
    }
    if (look->before.at == 0) {
        return (struct headroom){.room_pct = 100};
    }
    return headroom_between(&look->before, &mark);
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
    struct headroom sum = {.room_pct = 100};
    struct headroom *each = calloc(st->worker_count, sizeof *each);
    nsec_t now = clock_now();
    PTHREAD_OK(pthread_mutex_lock(&st->lock));
    if (st->looks == NULL) {
        st->looks = calloc(st->worker_count, sizeof *st->looks);
    }
    for (unsigned i = 0; st->looks != NULL && each != NULL && i < st->worker_count; i++) {
        each[i] = look(&st->looks[i], &st->workers[i], now);
        headroom_add(&sum, &each[i]);
    }
    PTHREAD_OK(pthread_mutex_unlock(&st->lock));
    sink_statf(sink, "qos_rate", "%.0f", sum.rate);
    sink_statf(sink, "qos_capacity_now", "%.0f", sum.capacity);
    sink_statf(sink, "qos_utilisation_pct", "%.1f", 100 * sum.utilisation);
    sink_statf(sink, "qos_headroom_pct", "%.1f", sum.room_pct);
    sink_statf(sink, "qos_predicted_p95_us", "%.1f", sum.p95_us);
    for (unsigned i = 0; each != NULL && i < st->worker_count; i++) {
        show_worker(sink, i, &each[i]);
    }
    free(each);
}
