/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "stats_steer.h"

#include <inttypes.h>

#include "net/listen.h"
#include "net/worker.h"

static void
show_rx(const struct stats *st, struct sink *sink)
{
    uint64_t checked = 0;
    uint64_t local = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        checked += ctr_get(&st->workers[i].qos.rx_checked);
        local += ctr_get(&st->workers[i].qos.rx_local);
    }
    sink_statf(sink, "rx_checked", "%" PRIu64, checked);
    sink_statf(sink, "rx_local_pct", "%.1f",
               checked > 0 ? 100.0 * (double)local / (double)checked : 0.0);
}

void
stats_show_steer(const struct stats *st, struct sink *sink)
{
    struct steer_sum sum = listen_steered(st->listen);
    sink_stat(sink, "steer_mode", steer_mode_name(st->listen->steer_mode));
    sink_stat(sink, "steer_kernel", reuseport_kind_name(st->listen->kind));
    sink_statf(sink, "steer_local", "%" PRIu64, sum.local);
    sink_statf(sink, "steer_near", "%" PRIu64, sum.near);
    sink_statf(sink, "steer_overflow", "%" PRIu64, sum.overflow);
    sink_statf(sink, "steer_fallback", "%" PRIu64, sum.fallback);
    show_rx(st, sink);
    for (unsigned i = 0; i < st->worker_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "worker_%u_conns", i);
        sink_statf(sink, name, "%u",
                   atomic_load_explicit(&st->shared->loads[i], memory_order_relaxed));
    }
}
