/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What quality of service did in the last minute, as a line for people. Pure: time and counters
 * are arguments. One thread.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

/* Since the start. */
struct minute_counts {
    uint64_t admitted, delayed, rejected, shed, would_limit;
};

struct minute {
    nsec_t due;
    struct minute_counts reported;
};

#define MINUTE_LINE_MAX 256

void minute_init(struct minute *m, nsec_t now);
/* True, with a line: a minute has passed in which requests were delayed or refused. */
must_check bool minute_tell(struct minute *m, nsec_t now, struct minute_counts counts,
                            char line[MINUTE_LINE_MAX]);
