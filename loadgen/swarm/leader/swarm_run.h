/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A run of a swarm as its leader orders it, and where goes what all report of it. Under the
 * mutex of struct followers.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/measure/server_stats.h"
#include "loadgen/swarm/ledger.h"

struct swarm_run {
    nsec_t begin; /* by the leader's clock */
    nsec_t warmup, time;
    nsec_t length;              /* of an interval */
    bool is_fresh;              /* all connections are made anew before */
    struct ledger *ledger;      /* part 0: this process; then the followers */
    unsigned observers;         /* followers that ask servers for their stats, */
    nsec_t stats_length;        /* so often, */
    struct server_stats *stats; /* and what they heard; NULL: nobody asks */
};
