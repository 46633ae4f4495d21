/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much more load there is room for, from what a worker did lately: requests, and the time
 * that it was busy. A neighbour that slows the worker down lengthens that time, so the
 * capacity shown is what is left of it now. Pure.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

/* Totals of a worker at a moment. */
struct headroom_mark {
    nsec_t at;
    nsec_t busy_ns;
    uint64_t requests;
};

struct headroom {
    double rate;        /* requests a second */
    double capacity;    /* of a worker that is always busy; 0: not known */
    double utilisation; /* 0 to 1 */
    double p95_us;      /* predicted: 3 / (capacity - rate), that of M/M/1; 0: none */
    double room_pct;    /* how much of the capacity is not used */
};

/* Between two marks. */
struct headroom headroom_between(const struct headroom_mark *from,
                                 const struct headroom_mark *to);
/* Of several workers: capacities and rates add up, the prediction is the worst. */
void headroom_add(struct headroom *sum, const struct headroom *one);
