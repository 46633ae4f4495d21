/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/passed.h"

#include <string.h>

#include "base/must.h"

#define WIDTH_FIRST NSEC_PER_MSEC

void
passed_init(struct passed *p, nsec_t start)
{
    memset(p, 0, sizeof *p);
    p->start = start;
    p->width = WIDTH_FIRST;
}

static void
put(struct passed *p, size_t bin, uint64_t count, nsec_t latest)
{
    p->bins[bin].count += count;
    p->bins[bin].latest = latest > p->bins[bin].latest ? latest : p->bins[bin].latest;
}

/* Each two bins become one. */
static void
halve(struct passed *p)
{
    p->width *= 2;
    for (size_t i = 0; i < PASSED_BINS; i++) {
        uint64_t count = p->bins[i].count;
        nsec_t latest = p->bins[i].latest;
        memset(&p->bins[i], 0, sizeof p->bins[i]);
        put(p, i / 2, count, latest);
    }
}

void
passed_add(struct passed *p, nsec_t intended)
{
    must(intended >= p->start);
    while ((intended - p->start) / p->width >= PASSED_BINS) {
        halve(p);
    }
    put(p, (intended - p->start) / p->width, 1, intended);
}

void
passed_settle(const struct passed *p, nsec_t end, struct hist *waits)
{
    for (size_t i = 0; i < PASSED_BINS; i++) {
        nsec_t latest = p->bins[i].latest;
        if (p->bins[i].count > 0) {
            hist_record_n(waits, end > latest ? end - latest : 0, p->bins[i].count);
        }
    }
}
