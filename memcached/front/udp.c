/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Datagrams. -U is front/network.c's. The policy: sock/guard.h.
 */
#include "front/front.h"

static const char *
add_trusted(void *conf, const char *text)
{
    struct settings *s = conf;
    for (;;) {
        size_t len = strcspn(text, ",");
        if (!guard_trust(&s->udp.guard, text, len)) {
            return "udp-allow must be a list of at most 32 networks like "
                   "10.0.0.0/8,fd00::/8";
        }
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

/* clang-format off */
static const struct opt options[] = {
    {.name = "udp-shared", .kind = OPT_FLAG, OF(udp.is_shared), .section = NETWORK,
     .help = "one UDP socket for all workers instead of one each"},
    {.name = "udp-guard", .kind = OPT_SWITCH, OF(udp.guard.is_on), .arg = "on|off",
     .section = NETWORK, .preset = "on", .error = "udp-guard must be on or off",
     .help = "limit what is sent to UDP sources that may be forged"},
    {.name = "udp-allow", SET(add_trusted), .arg = "NETS", .section = NETWORK,
     .adds_up = true,
     .help = "networks that --udp-guard trusts, besides loopback"},
};
/* clang-format on */

static void
wire(const struct settings *s, struct net_shared *shared)
{
    bool is_list = s->addresses != NULL && strchr(s->addresses, ',') != NULL;
    bool has_one = is_list && rules_of(s->profile)->udp_lists_have_one_worker;
    shared->udp.conf = s->udp;
    shared->udp.workers = has_one ? 1 : (unsigned)s->threads;
}

static const struct stats_counter counters[] = {
    {"udp_received", COUNTER_OF(udp_ctr.received)},
    {"udp_sent", COUNTER_OF(udp_ctr.sent)},
    {"udp_dropped", COUNTER_OF(udp_ctr.dropped)},
    {"udp_refused", COUNTER_OF(udp_ctr.refused)},
    {"udp_guarded", COUNTER_OF(udp_ctr.guarded)},
    {"udp_aside", COUNTER_OF(udp_ctr.aside)},
    {"udp_overflowed", COUNTER_OF(udp_ctr.overflowed)},
    {"udp_unsent", COUNTER_OF(udp_ctr.unsent)},
};

static void
show(struct stats *st, struct sink *sink)
{
    if (st->shared->udp.addresses > 0) {
        sink_stat(sink, "udp_guard", front_on(st->shared->udp.conf.guard.is_on));
        front_put_counters(st, sink, ROWS_OF(counters));
    }
}

const struct front front_udp = {OPTIONS(options), .usage = FRONT_USAGE, .wire = wire,
                                .show = show};
