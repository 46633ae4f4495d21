/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "front/stats_qos.h"

#include <inttypes.h>

#include "config.h"
#include "qos/pace.h"
#include "front/class.h"
#include "front/steer.h"

static void
show_udp(const struct stats *st, struct sink *sink)
{
    struct {
        uint64_t received, sent, dropped, refused, guarded, aside, overflowed, unsent;
    } sum = {0};
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct udp_ctr *ctr = &st->workers[i].udp_ctr;
        sum.received += ctr_get(&ctr->received);
        sum.sent += ctr_get(&ctr->sent);
        sum.dropped += ctr_get(&ctr->dropped);
        sum.refused += ctr_get(&ctr->refused);
        sum.guarded += ctr_get(&ctr->guarded);
        sum.aside += ctr_get(&ctr->aside);
        sum.overflowed += ctr_get(&ctr->overflowed);
        sum.unsent += ctr_get(&ctr->unsent);
    }
    sink_stat(sink, "udp_guard", st->shared->udp.conf.guard.is_on ? "on" : "off");
    sink_statf(sink, "udp_received", "%" PRIu64, sum.received);
    sink_statf(sink, "udp_sent", "%" PRIu64, sum.sent);
    sink_statf(sink, "udp_dropped", "%" PRIu64, sum.dropped);
    sink_statf(sink, "udp_refused", "%" PRIu64, sum.refused);
    sink_statf(sink, "udp_guarded", "%" PRIu64, sum.guarded);
    sink_statf(sink, "udp_aside", "%" PRIu64, sum.aside);
    sink_statf(sink, "udp_overflowed", "%" PRIu64, sum.overflowed);
    sink_statf(sink, "udp_unsent", "%" PRIu64, sum.unsent);
}

static void
show_server(struct stats *st, struct sink *sink)
{
    sink_stat(sink, "server", PACKAGE_NAME);
    sink_stat(sink, "server_version", PACKAGE_VERSION);
    stats_show_limit(st, sink);
}

static void
show_turns(struct stats *st, struct sink *sink)
{
    uint64_t deferred = 0;
    uint64_t turns = 0;
    uint64_t trickled = 0;
    uint64_t waits = 0;
    for (unsigned i = 0; i < st->worker_count; i++) {
        deferred += ctr_get(&st->workers[i].core.ctr.deferred);
        turns += ctr_get(&st->workers[i].core.ctr.turns);
        trickled += ctr_get(&st->workers[i].core.ctr.trickled);
        waits += ctr_get(&st->workers[i].core.ctr.trickle_waits);
    }
    sink_statf(sink, "turn_us", "%" PRIu64, PACE_CALM_NS / NSEC_PER_USEC);
    sink_statf(sink, "deferred", "%" PRIu64, deferred);
    sink_statf(sink, "deferred_turns", "%" PRIu64, turns);
    sink_statf(sink, "trickled_reads", "%" PRIu64, trickled);
    sink_statf(sink, "trickle_waits", "%" PRIu64, waits);
    stats_show_steer(st, sink);
}

static void
show_classes(struct stats *st, struct sink *sink)
{
    stats_put_classes(st, sink);
    if (st->shared->udp.addresses > 0) {
        show_udp(st, sink);
    }
}

enum reply
stats_show_qos(struct stats *st, struct serve_place *place, struct sink *sink)
{
    static void (*const parts[])(struct stats * st, struct sink * sink) = {
        show_server, stats_show_slo,   stats_show_headroom,
        show_turns,  stats_show_sched, show_classes,
    };
    parts[place->at++](st, sink);
    return place->at < sizeof parts / sizeof parts[0] ? REPLY_NONE : REPLY_END;
}
