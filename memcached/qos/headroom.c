/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/headroom.h"

#define P95_OF_MEAN 3.0 /* -ln 0.05: the waiting time of M/M/1 is exponential */

void
headroom_begin(struct headroom_window *w, const struct headroom_mark *now)
{
    *w = (struct headroom_window){.before = *now, .last = *now};
}

void
headroom_tick(struct headroom_window *w, const struct headroom_mark *now)
{
    if (now->at >= w->last.at + HEADROOM_TICK / 2) {
        w->before = w->last;
        w->last = *now;
    }
}

struct headroom
headroom_now(const struct headroom_window *w, const struct headroom_mark *now)
{
    return headroom_between(&w->before, now);
}

struct headroom
headroom_between(const struct headroom_mark *from, const struct headroom_mark *to)
{
    struct headroom h = {.workers = 1};
    if (to->at <= from->at || to->busy_ns <= from->busy_ns) {
        return h;
    }
    double elapsed = (double)(to->at - from->at);
    double busy = (double)(to->busy_ns - from->busy_ns);
    h.utilisation = busy < elapsed ? busy / elapsed : 1;
    if (to->requests > from->requests) {
        double requests = (double)(to->requests - from->requests);
        h.rate = requests * (double)NSEC_PER_SEC / elapsed;
        h.capacity = requests * (double)NSEC_PER_SEC / busy;
        if (h.capacity > h.rate) {
            h.p95_us = P95_OF_MEAN * 1e6 / (h.capacity - h.rate);
        }
    }
    return h;
}

void
headroom_add(struct headroom *sum, const struct headroom *one)
{
    unsigned workers = sum->workers + one->workers;
    sum->rate += one->rate;
    sum->capacity += one->capacity;
    sum->p95_us = one->p95_us > sum->p95_us ? one->p95_us : sum->p95_us;
    if (workers > 0) {
        sum->utilisation =
            (sum->utilisation * sum->workers + one->utilisation * one->workers) / workers;
    }
    sum->workers = workers;
}
