/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "stats_qos.h"

#include <inttypes.h>

#include "base/hist.h"
#include "config.h"
#include "stats_steer.h"

static double
us(uint64_t ns)
{
    return (double)ns / (double)NSEC_PER_USEC;
}

static void
show_delay(const struct stats *st, struct sink *sink)
{
    struct hist *all = hist_create(WORKER_DELAY_SUB_BITS, WORKER_DELAY_MAX_NS);
    if (all == NULL) {
        sink->has_failed = true;
        return;
    }
    for (unsigned i = 0; i < st->worker_count; i++) {
        hist_merge(all, st->workers[i].delay);
    }
    sink_statf(sink, "qps_delay_count", "%" PRIu64, hist_count(all));
    sink_statf(sink, "qps_delay_avg_us", "%.1f", us((uint64_t)hist_mean(all)));
    sink_statf(sink, "qps_delay_p50_us", "%.1f", us(hist_quantile(all, 0.50)));
    sink_statf(sink, "qps_delay_p95_us", "%.1f", us(hist_quantile(all, 0.95)));
    sink_statf(sink, "qps_delay_p99_us", "%.1f", us(hist_quantile(all, 0.99)));
    sink_statf(sink, "qps_delay_max_us", "%.1f", us(hist_max(all)));
    hist_destroy(&all);
}

static void
show_udp(const struct stats *st, struct sink *sink)
{
    struct {
        uint64_t received, sent, dropped, refused, guarded, unsent;
    } sum = {0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct udp_ctr *ctr = &st->workers[i].udp_ctr;
        sum.received += ctr_get(&ctr->received);
        sum.sent += ctr_get(&ctr->sent);
        sum.dropped += ctr_get(&ctr->dropped);
        sum.refused += ctr_get(&ctr->refused);
        sum.guarded += ctr_get(&ctr->guarded);
        sum.unsent += ctr_get(&ctr->unsent);
    }
    sink_stat(sink, "udp_guard", st->shared->udp.conf.guard.is_on ? "on" : "off");
    sink_statf(sink, "udp_received", "%" PRIu64, sum.received);
    sink_statf(sink, "udp_sent", "%" PRIu64, sum.sent);
    sink_statf(sink, "udp_dropped", "%" PRIu64, sum.dropped);
    sink_statf(sink, "udp_refused", "%" PRIu64, sum.refused);
    sink_statf(sink, "udp_guarded", "%" PRIu64, sum.guarded);
    sink_statf(sink, "udp_unsent", "%" PRIu64, sum.unsent);
}

void
stats_show_qos(struct stats *st, struct sink *sink)
{
    const struct limit *limit = &st->shared->limit;
    uint64_t rate = atomic_load_explicit(&limit->rate, memory_order_relaxed);
    uint64_t admitted = 0;
    uint64_t delayed = 0;
    uint64_t deferred = 0;
    uint64_t turns = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        admitted += ctr_get(&st->workers[i].qos.admitted);
        delayed += ctr_get(&st->workers[i].qos.delayed);
        deferred += ctr_get(&st->workers[i].qos.deferred);
        turns += ctr_get(&st->workers[i].qos.turns);
    }
    sink_stat(sink, "server", PACKAGE_NAME);
    sink_stat(sink, "server_version", PACKAGE_VERSION);
    if (rate > 0) {
        sink_statf(sink, "qps_limit", "%" PRIu64, rate);
        sink_statf(sink, "qps_burst", "%" PRIu64,
                   atomic_load_explicit(&limit->burst, memory_order_relaxed));
    } else {
        sink_stat(sink, "qps_limit", "off");
        sink_stat(sink, "qps_burst", "0");
    }
    sink_statf(sink, "qps_admitted", "%" PRIu64, admitted);
    sink_statf(sink, "qps_delayed", "%" PRIu64, delayed);
    sink_statf(sink, "qps_lease_retries", "%" PRIu64,
               atomic_load_explicit(&limit->cas_retries, memory_order_relaxed));
    show_delay(st, sink);
    sink_statf(sink, "turn_us", "%" PRIu64, st->shared->turn_ns / NSEC_PER_USEC);
    sink_statf(sink, "deferred", "%" PRIu64, deferred);
    sink_statf(sink, "deferred_turns", "%" PRIu64, turns);
    stats_show_steer(st, sink);
    if (st->shared->udp.addresses > 0) {
        show_udp(st, sink);
    }
}
