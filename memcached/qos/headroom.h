/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much more load there is room for, from what a worker did lately: requests, and the time
 * that it was busy. A neighbour that slows the worker down lengthens that time, so the capacity
 * shown (requests / busy time, the utilisation law: Denning and Buzen 1978) is what is left of it
 * now. Pure.
 */
#pragma once

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
    double utilisation; /* 0 to 1: of the time the part that it was busy */
    double p95_us;      /* predicted: 3 / (capacity - rate), that of M/M/1; 0: none */
    unsigned workers;   /* that it tells of */
};

/* A worker's last marks. The server makes them, and reading them changes nothing: what is shown
 * is of the last HEADROOM_TICK to twice that, or since the start. */
#define HEADROOM_TICK NSEC_PER_SEC

struct headroom_window {
    struct headroom_mark before, last;
};

/* The worker has started. */
void headroom_begin(struct headroom_window *w, const struct headroom_mark *now);
/* To be called every HEADROOM_TICK; one that comes much too early counts for nothing. */
void headroom_tick(struct headroom_window *w, const struct headroom_mark *now);
struct headroom headroom_now(const struct headroom_window *w,
                             const struct headroom_mark *now);

/* Between two marks. */
struct headroom headroom_between(const struct headroom_mark *from,
                                 const struct headroom_mark *to);
/* Of several workers: capacities and rates add up, utilisation is the mean, the prediction is the
 * worst. */
void headroom_add(struct headroom *sum, const struct headroom *one);
