/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "qos/headroom.h"

#define P95_OF_MEAN 3.0 /* -ln 0.05: the waiting time of M/M/1 is exponential */

static void
finish(struct headroom *h)
{
    h->utilisation = h->capacity > 0 ? h->rate / h->capacity : 0;
    h->utilisation = h->utilisation < 1 ? h->utilisation : 1;
    h->room_pct = 100 * (1 - h->utilisation);
}

struct headroom
headroom_between(const struct headroom_mark *from, const struct headroom_mark *to)
{
    struct headroom h = {0};
    if (to->at > from->at && to->busy_ns > from->busy_ns &&
        to->requests > from->requests) {
        double requests = (double)(to->requests - from->requests);
        h.rate = requests * (double)NSEC_PER_SEC / (double)(to->at - from->at);
        h.capacity =
            requests * (double)NSEC_PER_SEC / (double)(to->busy_ns - from->busy_ns);
        if (h.capacity > h.rate) {
            h.p95_us = P95_OF_MEAN * 1e6 / (h.capacity - h.rate);
        }
    }
    finish(&h);
    return h;
}

void
headroom_add(struct headroom *sum, const struct headroom *one)
{
    sum->rate += one->rate;
    sum->capacity += one->capacity;
    sum->p95_us = one->p95_us > sum->p95_us ? one->p95_us : sum->p95_us;
    finish(sum);
}
