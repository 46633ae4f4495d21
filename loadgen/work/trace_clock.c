/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/trace.h"

#include <math.h>

#include "base/must.h"

void
trace_clock_begin(struct trace_clock *c, uint64_t begin_ns, uint64_t count)
{
    must(count > 0);
    c->begin_ns = begin_ns;
    c->count = c->left = count;
    c->at = 0;
}

uint64_t
trace_clock_next(struct trace_clock *c)
{
    must(c->left > 0);
    if (c->spread == TRACE_SPREAD_EXPONENTIAL) {
        /* The smallest of `left` uniform numbers on what is left of the step. */
        c->at += (1 - c->at) * (1 - pow(rng_unit(c->rng), 1 / (double)c->left));
    } else if (c->spread == TRACE_SPREAD_UNIFORM) {
        c->at = ((double)(c->count - c->left) + 0.5) / (double)c->count;
    }
    c->left--;
    uint64_t in_step = (uint64_t)(c->at * (double)c->step_ns);
    return c->begin_ns + (in_step < c->step_ns ? in_step : c->step_ns - 1);
}
