/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/pacing.h"

#include "base/must.h"

void
pacer_init(struct pacer *p, double rate)
{
    must(rate >= 0);
    *p = (struct pacer){.gap_ns = 0};
    if (rate > 0) {
        double gap = (double)NSEC_PER_SEC / rate;
        p->gap_ns = gap < 1 ? 1 : (nsec_t)gap;
    }
}

void
pacer_take(struct pacer *p, nsec_t now)
{
    nsec_t from = p->next_at + PACING_BURST > now ? p->next_at : now - PACING_BURST;
    p->next_at = from + p->gap_ns;
}

nsec_t
pacer_reserve(struct pacer *p, nsec_t now)
{
    nsec_t when = pacer_next(p) > now ? p->next_at : now;
    pacer_take(p, when);
    return when;
}
