/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/pacing.h"

#include <assert.h>
#include <time.h>

#include "base/must.h"

void
give_way_look(struct give_way *g, nsec_t cpu, nsec_t now)
{
    int64_t used = (int64_t)(cpu - g->cpu), passed = (int64_t)(now - g->at);
    g->owed += used - (passed - passed / GIVE_WAY_SHARE);
    int64_t most = GIVE_WAY_AHEAD;
    g->owed = g->owed < -most ? -most : g->owed > most ? most : g->owed;
    g->at = now;
    g->cpu = cpu;
}

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

/* ---- cap --------------------------------------------------------------------------- */

static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share it");

#define LOOK (20 * NSEC_PER_MSEC) /* for the end */

static void
rate_init(struct cap_rate *r, double rate, nsec_t burst)
{
    r->gap_ns = rate > 0 ? (double)NSEC_PER_SEC / rate : 0;
    r->burst = burst;
    atomic_init(&r->paid_to, 0);
}

void
cap_init(struct cap *c, double requests, double bytes)
{
    rate_init(&c->requests, requests, CAP_REQUESTS_BURST);
    rate_init(&c->bytes, bytes, CAP_BYTES_BURST);
}

bool
cap_is_on(const struct cap *c)
{
    return c->requests.gap_ns > 0 || c->bytes.gap_ns > 0;
}

static nsec_t
rate_spend(struct cap_rate *r, uint64_t n, nsec_t now)
{
    uint64_t before = atomic_load_explicit(&r->paid_to, memory_order_relaxed), after;
    nsec_t cost = (nsec_t)((double)n * r->gap_ns);
    do {
        after = (before > now ? before : now) + cost;
    } while (!atomic_compare_exchange_weak_explicit(
        &r->paid_to, &before, after, memory_order_relaxed, memory_order_relaxed));
    return after > r->burst ? after - r->burst : 0;
}

nsec_t
cap_spend(struct cap *c, uint64_t requests, uint64_t bytes, nsec_t now)
{
    nsec_t a = rate_spend(&c->requests, requests, now);
    nsec_t b = rate_spend(&c->bytes, bytes, now);
    return a > b ? a : b;
}

nsec_t
cap_throttle(struct cap *c, uint64_t requests, uint64_t bytes, nsec_t end,
             const atomic_bool *stop)
{
    nsec_t now = clock_now();
    nsec_t when = cap_spend(c, requests, bytes, now);
    when = when < end ? when : end;
    while (now < when &&
           (stop == NULL || !atomic_load_explicit(stop, memory_order_relaxed))) {
        nsec_t pause = when - now < LOOK ? when - now : LOOK;
        struct timespec ts = {0, (long)pause};
        nanosleep(&ts, NULL);
        now = clock_now();
    }
    return now;
}
