/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/phases.h"

#include <assert.h>

/* A phase that ends before it begins did not come to pass. */
static struct result_span
span_of(nsec_t opened, nsec_t start, nsec_t stop)
{
    stop = stop > start ? stop : start;
    return (struct result_span){
        (double)(start - opened) / (double)NSEC_PER_SEC,
        (double)(stop - opened) / (double)NSEC_PER_SEC,
    };
}

void
phases_tell(const struct phase_times *t, struct result_span phases[PHASES])
{
    nsec_t warm = t->end < t->start ? t->end : t->start;
    phases[PHASE_LOAD] =
        span_of(t->opened, t->opened, t->is_first ? t->ready : t->opened);
    phases[PHASE_WARMUP] = span_of(t->opened, t->begin, warm);
    phases[PHASE_MEASURE] = span_of(t->opened, t->start, t->end);
    phases[PHASE_DRAIN] = span_of(t->opened, t->end, t->drained);
}

const char *
phase_name(enum result_phase phase)
{
    static const char *const names[] = {
        [PHASE_LOAD] = "load",
        [PHASE_WARMUP] = "warmup",
        [PHASE_MEASURE] = "measure",
        [PHASE_DRAIN] = "drain",
    };
    static_assert(sizeof names / sizeof names[0] == PHASES, "one name each");
    must((unsigned)phase < PHASES);
    return names[phase];
}
