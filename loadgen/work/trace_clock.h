/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the requests of a trace were meant to start, where the trace tells only the second (or
 * another step of time): the n of a step are spread over it, in their order, as the arrivals
 * of a Poisson process of which it is known that n came (the order statistics of n uniform
 * numbers, one after another), or evenly. Pure.
 */
#pragma once

#include <stdint.h>

#include "base/rng.h"

enum trace_spread {
    TRACE_SPREAD_EXPONENTIAL,
    TRACE_SPREAD_UNIFORM,
    TRACE_SPREAD_NONE, /* all at its beginning */
};

struct trace_clock {
    enum trace_spread spread;
    struct rng *rng; /* the caller's */
    uint64_t step_ns, begin_ns;
    uint64_t count, left; /* of this step */
    double at;            /* of the last one, of the step, 0 to 1 */
};

/* `count` requests, at least 1, come in the step that begins then. */
void trace_clock_begin(struct trace_clock *c, uint64_t begin_ns, uint64_t count);
/* When the next of them starts: `count` calls, times do not fall. */
uint64_t trace_clock_next(struct trace_clock *c);
