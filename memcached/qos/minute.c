/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/minute.h"

#include <inttypes.h>

#define MINUTE_NS (60 * NSEC_PER_SEC)

void
minute_init(struct minute *m, nsec_t now)
{
    *m = (struct minute){.due = now + MINUTE_NS};
}

bool
minute_tell(struct minute *m, nsec_t now, struct minute_counts counts,
            char line[MINUTE_LINE_MAX])
{
    if (now < m->due) {
        return false;
    }
    const struct minute_counts *reported = &m->reported;
    uint64_t delayed = counts.delayed - reported->delayed;
    uint64_t rejected = counts.rejected - reported->rejected;
    uint64_t shed = counts.shed - reported->shed;
    uint64_t would = counts.would_limit - reported->would_limit;
    snprintf(line, MINUTE_LINE_MAX,
             "qos in the last minute: %" PRIu64 " requests admitted, of these %" PRIu64
             " delayed; refused: %" PRIu64 " by limits, %" PRIu64 " by the slo%s",
             counts.admitted - reported->admitted, delayed, rejected, shed,
             would > 0 ? " (dry run: limits would have acted)" : "");
    m->due = now + MINUTE_NS;
    m->reported = counts;
    return delayed + rejected + shed + would > 0;
}
