/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which worker has a connection: steering at the start, balance later. The policy: qos/steer.h,
 * qos/balance.h, qos/homing.h.
 */
#include <inttypes.h>

#include "base/num.h"
#include "front/front.h"
#include "control/balancer.h"
#include "net/migrate.h"

static const char *
set_steer(void *conf, const char *text)
{
    struct settings *s = conf;
    s->is_steered = true;
    return steer_mode_parse(text, &s->listen.steer)
               ? NULL
               : "steering is one of rr, cpu, reuseport, napi, p2c";
}

/* clang-format off */
static const struct opt options[] = {
    {.letter = 'N', .name = "napi-ids", .kind = OPT_INT, OF(listen.napi_ids), .min = 1,
     .max = INT32_MAX, .exit_status = 1, .arg = "N", .section = THREADS,
     .error = "Maximum number of NAPI IDs must be greater than 0 and at most 2147483647",
     .help = "as --steer=napi, for at most N receive queues"},
    {.name = "steer", SET(set_steer), .arg = "rr|cpu|reuseport|napi|p2c", .section = THREADS,
     .after = "pin", .preset_help = "cpu with --pin, else rr",
     .help = "how connections are assigned to workers"},
    {.name = "balance", .kind = OPT_FLAG, OF(balances), .section = THREADS,
     .after = "membind", .help = "move connections from busy workers to idle ones"},
};
/* clang-format on */

/* ---- statistics ----------------------------------------------------------------------- */

static void
show_rx(const struct stats *st, struct sink *sink)
{
    uint64_t checked = front_sum(st, COUNTER_OF(rx.checked));
    uint64_t local = front_sum(st, COUNTER_OF(rx.local));
    sink_statf(sink, "rx_checked", "%" PRIu64, checked);
    sink_statf(sink, "rx_local_pct", "%.1f",
               checked > 0 ? 100.0 * (double)local / (double)checked : 0.0);
}

static const struct stats_counter moves[] = {
    {"migrations_total", COUNTER_OF(migrate.taken)},
    {"migrations_home", COUNTER_OF(migrate.homed)},
};

static void
show_workers(const struct stats *st, struct sink *sink)
{
    char prefix[24];
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct worker *w = &st->workers[i];
        snprintf(prefix, sizeof prefix, "worker_%u_", i);
        sink_stat_of(sink, prefix, "conns", "%u",
                     atomic_load_explicit(&st->shared->loads[i], memory_order_relaxed));
        if (st->settings->balances) {
            uint32_t milli =
                atomic_load_explicit(&w->migrate.load_milli, memory_order_relaxed);
            sink_stat_of(sink, prefix, "load", "%.2f", (double)milli / 1000);
            sink_stat_of(sink, prefix, "crowded", "%s",
                         steer_map_is_excluded(&st->shared->steer, i) ? "yes" : "no");
        }
    }
}

static void
show(struct stats *st, struct sink *sink)
{
    struct steer_sum sum = listen_steered(st->listen);
    unsigned reason = atomic_load_explicit(&st->shared->last_move, memory_order_relaxed);
    sink_stat(sink, "steer_mode", steer_mode_name(st->listen->steer_mode));
    sink_stat(sink, "steer_kernel", reuseport_kind_name(st->listen->kind));
    sink_statf(sink, "steer_local", "%" PRIu64, sum.local);
    sink_statf(sink, "steer_near", "%" PRIu64, sum.near);
    sink_statf(sink, "steer_overflow", "%" PRIu64, sum.overflow);
    sink_statf(sink, "steer_fallback", "%" PRIu64, sum.fallback);
    show_rx(st, sink);
    sink_stat(sink, "balance", front_on(st->settings->balances));
    sink_stat(sink, "balance_homing", front_on(st->shared->calls_home));
    front_put_counters(st, sink, ROWS_OF(moves));
    sink_stat(sink, "migr_last_reason", balance_reason_name((enum balance_reason)reason));
    show_workers(st, sink);
}

/* ---- command -------------------------------------------------------------------------- */

static enum reply
run_rebalance(struct stats *st, struct serve_qos *q)
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

/* clang-format off */
static const struct qos_row commands[] = {
    {.word = "rebalance", .arguments = "[from to [n]]", .most = 3, .is_control = true,
     .run = run_rebalance, .meaning = "move connections between workers",
     .after = "repin"},
};
/* clang-format on */

const struct front front_steer = {OPTIONS(options), COMMANDS(commands),
                                  .usage = FRONT_USAGE, .show = show};
