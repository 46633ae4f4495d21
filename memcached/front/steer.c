/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * ... and "qos rebalance".
 */
#include "front/steer.h"

#include <inttypes.h>

#include "base/num.h"
#include "control/balancer.h"
#include "net/listen.h"
#include "net/migrate.h"
#include "net/worker.h"
#include "front/command.h"
#include "front/settings.h"

static void
show_rx(const struct stats *st, struct sink *sink)
{
    uint64_t checked = 0;
    uint64_t local = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        checked += ctr_get(&st->workers[i].rx.rx_checked);
        local += ctr_get(&st->workers[i].rx.rx_local);
    }
    sink_statf(sink, "rx_checked", "%" PRIu64, checked);
    sink_statf(sink, "rx_local_pct", "%.1f",
               checked > 0 ? 100.0 * (double)local / (double)checked : 0.0);
}

static void
show_moves(const struct stats *st, struct sink *sink)
{
    uint64_t taken = 0;
    uint64_t homed = 0;
    unsigned reason = atomic_load_explicit(&st->shared->last_move, memory_order_relaxed);
    for (unsigned i = 0; i < st->worker_count; i++) {
        taken += ctr_get(&st->workers[i].migrate.taken);
        homed += ctr_get(&st->workers[i].migrate.homed);
    }
    sink_stat(sink, "balance", st->settings->balances ? "on" : "off");
    sink_stat(sink, "balance_homing", st->shared->calls_home ? "on" : "off");
    sink_statf(sink, "migrations_total", "%" PRIu64, taken);
    sink_statf(sink, "migrations_home", "%" PRIu64, homed);
    sink_stat(sink, "migr_last_reason", balance_reason_name((enum balance_reason)reason));
}

static void
show_workers(const struct stats *st, struct sink *sink)
{
    char name[32];
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct worker *w = &st->workers[i];
        snprintf(name, sizeof name, "worker_%u_conns", i);
        sink_statf(sink, name, "%u",
                   atomic_load_explicit(&st->shared->loads[i], memory_order_relaxed));
        if (st->settings->balances) {
            uint32_t milli =
                atomic_load_explicit(&w->migrate.load_milli, memory_order_relaxed);
            snprintf(name, sizeof name, "worker_%u_load", i);
            sink_statf(sink, name, "%.2f", (double)milli / 1000);
            snprintf(name, sizeof name, "worker_%u_crowded", i);
            sink_stat(sink, name,
                      steer_map_is_shunned(&st->shared->steer, i) ? "yes" : "no");
        }
    }
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
    show_moves(st, sink);
    show_workers(st, sink);
}

enum reply
qos_rebalance(struct stats *st, struct serve_qos *q)
{
    uint32_t from, to, most = 1;
    unsigned count = st->worker_count;
    const struct slice *words = q->words;
    if (q->count == 0) {
        balancer_rebalance(st->shared);
        return REPLY_OK;
    }
    if (q->count < 2 || !num_u32(words[0].p, words[0].len, &from) ||
        !num_u32(words[1].p, words[1].len, &to) ||
        (q->count == 3 && !num_u32(words[2].p, words[2].len, &most)) || from >= count ||
        to >= count || from == to || most == 0 || most > UINT16_MAX) {
        return REPLY_BAD_FORMAT;
    }
    struct balance_move move = {
        .from = from, .to = to, .conns = most, .share = 1, .reason = BALANCE_ORDER};
    migrate_order(st->shared, &move);
    return REPLY_OK;
}
