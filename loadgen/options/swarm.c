/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Several machines in one run: agents and who leads them.
 */
#include "loadgen/options/group.h"

/* clang-format off */
static const struct opt rows[] = {
    REFUSED(0, "roundrobin"),
    REFUSED('A', "agentmode"), REFUSED_VALUE('a', "agent"),
    REFUSED_VALUE('p', "agent-port"), REFUSED_VALUE('l', "lambda-mul"),
    REFUSED_VALUE('m', "poll-freq"),
    REFUSED_VALUE('M', "poll-max"),
};
/* clang-format on */

const struct run_group group_swarm = {ROWS(rows)};
