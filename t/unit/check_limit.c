/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The rate limiter on fake time: conformance in every window, the rate achieved under load,
 * changes at run time, extremes of the clock, and exact counts with real threads.
 */
#include "qos/limit.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/rng.h"
#include "check_main.h"

#define WORKERS_MAX 16
#define START (UINT64_C(1234567) * NSEC_PER_SEC)

/* ---- helpers -------------------------------------------------------------------------- */

/* Says whether any window has held more than burst + rate * T grants: the grants fill a
 * bucket of that depth that leaks at the rate. Units of 1e-9 tokens; exact. */
struct witness {
    uint64_t rate;
    uint64_t depth;
    uint64_t level;
    nsec_t last;
    uint64_t count;
};

static void
witness_init(struct witness *w, uint64_t rate, uint64_t tokens)
{
    /* One nanosecond's worth for the rounding of the burst to whole nanoseconds. */
    *w = (struct witness){.rate = rate, .depth = tokens * NSEC_PER_SEC + rate};
}

static void
witness_grant(struct witness *w, nsec_t now)
{
    uint64_t leaked;
    if (__builtin_mul_overflow(now - w->last, w->rate, &leaked) || leaked > w->level) {
        leaked = w->level;
    }
    w->level += NSEC_PER_SEC - leaked;
    w->last = now;
    w->count++;
    if (w->level > w->depth) {
        ck_abort_msg("rate %" PRIu64 ": %" PRIu64 " tokens above burst and leases",
                     w->rate, (w->level - w->depth) / NSEC_PER_SEC);
    }
}

/* Under the limit as it is. */
static uint64_t
lease_size_of(struct limit *l)
{
    return limit_lease_size(atomic_load(&l->rate), l->workers);
}

/* Takes until refused; returns how many. */
static uint64_t
drain(struct limit *l, struct limit_lease *lease, nsec_t now, nsec_t *retry_at)
{
    uint64_t n = 0;
    while (limit_take(l, lease, now, retry_at)) {
        if (n++ > 2 * LIMIT_BURST_MAX) {
            ck_abort_msg("no end of tokens");
        }
    }
    ck_assert(*retry_at > now || now == UINT64_MAX);
    return n;
}

/* ---- one worker ----------------------------------------------------------------------- */

static struct limit l;
static struct limit_lease lease;
static nsec_t retry_at;

static void
set_up(void)
{
    limit_init(&l, 1);
}

static void
tear_down(void)
{
    limit_fini(&l);
}

/* With another number of workers, and nothing given. */
static void
restart(unsigned workers)
{
    limit_fini(&l);
    limit_init(&l, workers);
    lease = (struct limit_lease){0};
}

FIXTURE(set_up, tear_down);

TEST(off_never_refuses)
{
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(limit_take(&l, &lease, START, &retry_at));
    }
    limit_set(&l, 10, 1, START);
    ck_assert_uint_eq(drain(&l, &lease, START, &retry_at), 1);
    limit_set(&l, 0, 0, START);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(limit_take(&l, &lease, START, &retry_at));
    }
    ck_assert_uint_eq(atomic_load(&l.cas_retries), 0);
}

TEST(default_burst_is_two_milliseconds)
{
    ck_assert_uint_eq(limit_default_burst(1), 16);
    ck_assert_uint_eq(limit_default_burst(8000), 16);
    ck_assert_uint_eq(limit_default_burst(50000), 100);
    ck_assert_uint_eq(limit_default_burst(LIMIT_RATE_MAX), LIMIT_BURST_MAX);
    limit_set(&l, 50000, 0, START);
    ck_assert_uint_eq(atomic_load(&l.burst), 100);
}

TEST(lease_follows_the_rate)
{
    static const struct {
        uint64_t rate;
        unsigned workers;
        uint64_t size;
    } cases[] = {{1, 1, 1},        {1000, 4, 1},       {50000, 1, 10},
                 {50000, 4, 2},    {50000, 16, 1},     {1000000, 4, 50},
                 {1000000, 1, 64}, {10000000, 16, 64}, {1000000000, 64, 64}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        restart(cases[i].workers);
        limit_set(&l, cases[i].rate, 0, START);
        ck_assert_uint_eq(lease_size_of(&l), cases[i].size);
    }
}

TEST(idle_time_is_worth_one_burst)
{
    static const nsec_t idle[] = {1, NSEC_PER_SEC, 3600 * NSEC_PER_SEC,
                                  1000000000 * NSEC_PER_SEC};
    for (unsigned i = 0; i < sizeof idle / sizeof idle[0]; i++) {
        restart(1);
        limit_set(&l, 100000, 250, START);
        ck_assert_uint_eq(drain(&l, &lease, START + idle[i], &retry_at), 250);
        ck_assert_uint_eq(retry_at, START + idle[i] + 10000);
    }
}

TEST(the_bucket_tells_its_tokens)
{
    ck_assert_double_eq_tol(limit_tokens(&l, START), 0, 1e-6);
    limit_set(&l, 1000, 50, START);
    ck_assert_double_eq_tol(limit_tokens(&l, START), 50, 1e-6);
    ck_assert_uint_eq(drain(&l, &lease, START, &retry_at), 50);
    ck_assert_double_eq_tol(limit_tokens(&l, START), 0, 1e-6);
    ck_assert_double_eq_tol(limit_tokens(&l, START + 20 * NSEC_PER_MSEC), 20, 1e-6);
    ck_assert_double_eq_tol(limit_tokens(&l, START + NSEC_PER_SEC), 50, 1e-6);
    while (!limit_reserve(&l, &lease, 60, START + NSEC_PER_SEC, &retry_at)) {
    }
    ck_assert_double_eq_tol(limit_tokens(&l, START + NSEC_PER_SEC), -10, 1e-6);
    limit_set(&l, 0, 0, START + NSEC_PER_SEC);
    ck_assert_double_eq_tol(limit_tokens(&l, START + NSEC_PER_SEC), 0, 1e-6);
}

TEST_LOOP(retry_at_is_the_earliest_time, 2)
{
    struct rng rng;
    rng_init(&rng, 2, (uint64_t)_i);
    for (unsigned run = 0; run < 200; run++) {
        nsec_t now = START + rng_below(&rng, NSEC_PER_SEC), again;
        restart(1 + (unsigned)rng_below(&rng, WORKERS_MAX));
        limit_set(&l, 1 + rng_below(&rng, UINT64_C(1) << rng_below(&rng, 30)),
                  1 + rng_below(&rng, 100), now);
        for (unsigned i = 0; i < 20; i++) {
            drain(&l, &lease, now, &retry_at);
            if (retry_at - 1 > now) {
                ck_assert(!limit_take(&l, &lease, retry_at - 1, &again));
                ck_assert_uint_eq(again, retry_at);
            }
            ck_assert(limit_take(&l, &lease, retry_at, &again));
            now = retry_at + rng_below(&rng, 1000);
        }
    }
}

TEST(one_a_second)
{
    restart(4);
    limit_set(&l, 1, 1, START);
    ck_assert(limit_take(&l, &lease, START, &retry_at));
    for (uint64_t s = 1; s < 100; s++) {
        nsec_t now = START + s * NSEC_PER_SEC;
        ck_assert(!limit_take(&l, &lease, now - 1, &retry_at));
        ck_assert_uint_eq(retry_at, now);
        ck_assert(limit_take(&l, &lease, now, &retry_at));
    }
}

/* Prices of 999,999,937 / s are no whole nanoseconds; they must add up all the same. */
TEST_LOOP(rounding_does_not_add_up, 6)
{
    static const uint64_t rates[] = {3, 7, 9999991, 123456789, 699999953, 999999937};
    limit_set(&l, rates[_i], 1, START);
    uint64_t given = drain(&l, &lease, START, &retry_at);
    for (unsigned i = 0; i < 100000; i++) {
        nsec_t now = retry_at;
        given += drain(&l, &lease, now, &retry_at);
        double due = (double)(now - START) * (double)rates[_i] / 1e9;
        expect_between(given, due - 2, due + 2);
    }
}

/* A worker with little to do gives its lease back after each request. */
TEST_LOOP(returning_neither_costs_nor_pays, 5)
{
    static const uint64_t rates[] = {12345, 333333, 9999991, 123456789, 999999937};
    limit_set(&l, rates[_i], 100, START);
    uint64_t given = drain(&l, &lease, START, &retry_at);
    nsec_t now = retry_at;
    for (unsigned i = 0; i < 100000; i++) {
        while (limit_take(&l, &lease, now, &retry_at)) {
            limit_return(&l, &lease, now);
            given++;
        }
        now = retry_at + i % 50 * 1000000 / rates[_i];
        double due = (double)(now - START) * (double)rates[_i] / 1e9;
        if ((double)given > due + 102 || (double)given < due + 97) {
            ck_abort_msg("%" PRIu64 " given, %f due", given, due);
        }
    }
}

TEST(any_time_is_safe)
{
    static const nsec_t times[] = {
        0,
        1,
        NSEC_PER_SEC,
        UINT64_MAX / 2,
        UINT64_MAX - NSEC_PER_SEC,
        UINT64_MAX - 1,
        UINT64_MAX,
    };
    static const uint64_t rates[] = {1, 1000, LIMIT_RATE_MAX};
    static const uint64_t bursts[] = {1, 16, LIMIT_BURST_MAX};
    for (unsigned t = 0; t < sizeof times / sizeof times[0]; t++) {
        for (unsigned i = 0; i < 9; i++) {
            restart(1);
            limit_set(&l, rates[i / 3], bursts[i % 3], times[t]);
            ck_assert_uint_le(drain(&l, &lease, times[t], &retry_at), bursts[i % 3]);
            limit_set(&l, rates[(i + 4) % 9 / 3], bursts[(i + 1) % 3], times[t]);
            /* A thread whose clock reading is older. */
            drain(&l, &lease, times[t] / 2, &retry_at);
            limit_return(&l, &lease, times[t]);
            limit_return(&l, &lease, 0);
        }
    }
}

/* ---- changes at run time -------------------------------------------------------------- */

TEST(faster_takes_effect_at_once)
{
    limit_set(&l, 1, 16, START);
    ck_assert_uint_eq(drain(&l, &lease, START, &retry_at), 16);
    ck_assert_uint_eq(retry_at, START + NSEC_PER_SEC);
    limit_set(&l, 1000000, 2000, START);
    ck_assert_uint_eq(drain(&l, &lease, START, &retry_at), 0);
    ck_assert_uint_le(retry_at, START + 1000);
    uint64_t given = 0;
    while (retry_at < START + NSEC_PER_SEC) {
        given += drain(&l, &lease, retry_at, &retry_at);
    }
    expect_between(given, 999990, 1000000);
}

TEST(slower_takes_effect_at_once)
{
    struct limit_lease leases[4] = {0};
    restart(4);
    limit_set(&l, 1000000, 2000, START);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(limit_take(&l, &leases[i], START, &retry_at));
        ck_assert_uint_eq(leases[i].tokens, 49);
    }
    limit_set(&l, 10, 1, START);
    uint64_t given = 0;
    for (unsigned i = 0; i < 4; i++) {
        given += drain(&l, &leases[i], START, &retry_at);
    }
    ck_assert_uint_le(given, 1);
    ck_assert_uint_ge(retry_at, START + NSEC_PER_SEC / 10 - 1);
}

TEST(setting_the_same_changes_nothing)
{
    limit_set(&l, 1000, 16, START);
    ck_assert_uint_eq(drain(&l, &lease, START, &retry_at), 16);
    for (unsigned i = 0; i < 100; i++) {
        limit_set(&l, 1000, 16, START);
        ck_assert_uint_eq(drain(&l, &lease, START, &retry_at), 0);
    }
}

TEST_LOOP(changing_all_the_time_is_no_windfall_and_no_famine, 2)
{
    struct rng rng;
    rng_init(&rng, 3, (uint64_t)_i);
    uint64_t given = 0, rate = 1000;
    double due = 0;
    nsec_t now = START;
    limit_set(&l, rate, 16, now);
    given += drain(&l, &lease, now, &retry_at);
    for (unsigned i = 0; i < 20000; i++) {
        nsec_t step = rng_below(&rng, 50 * NSEC_PER_USEC);
        now += step;
        due += (double)step * (double)rate / 1e9;
        given += drain(&l, &lease, now, &retry_at);
        rate = i % 2 == 0 ? 100 + rng_below(&rng, 1000) : 1000 + rng_below(&rng, 1000000);
        limit_set(&l, rate, 64 + rng_below(&rng, 2000),
                  now); /* more than a step brings */
        given += drain(&l, &lease, now, &retry_at);
    }
    ck_assert_double_le((double)given, due + 16 + 1);
    /* A lease in hand when the rate changes is void: the drain above leaves none. What is
     * lost is a nanosecond's worth a change. */
    ck_assert_double_ge((double)given, due - 20000 * 1e-9 * 1e6);
}

/* ---- many workers --------------------------------------------------------------------- */

TEST_LOOP(frozen_time_gives_exactly_the_burst, 2)
{
    struct limit_lease leases[WORKERS_MAX] = {0};
    struct rng rng;
    rng_init(&rng, 4, (uint64_t)_i);
    for (unsigned run = 0; run < 50; run++) {
        unsigned workers = 1 + (unsigned)rng_below(&rng, WORKERS_MAX);
        uint64_t burst = 1 + rng_below(&rng, 5000), given = 0;
        unsigned refused = 0;
        memset(leases, 0, sizeof leases);
        restart(workers);
        limit_set(&l, 1 + rng_below(&rng, 20000000), burst, START);
        while (refused < 100 * workers) {
            bool is_taken =
                limit_take(&l, &leases[rng_below(&rng, workers)], START, &retry_at);
            given += is_taken;
            refused = is_taken ? 0 : refused + 1;
        }
        /* Each worker's price is rounded up by less than a nanosecond. */
        expect_between(given, burst - 1, burst);
    }
}

TEST_LOOP(old_lease_goes_back, 2)
{
    struct limit_lease a = {0}, b = {0};
    nsec_t now = START;
    limit_set(&l, 50000, 100, now);
    ck_assert(limit_take(&l, &a, now, &retry_at));
    ck_assert_uint_eq(a.tokens, 9);
    if (_i == 0) {
        limit_return(&l, &a, now);
        ck_assert_uint_eq(a.tokens, 0);
        ck_assert_uint_eq(drain(&l, &b, now, &retry_at), 99);
    } else {
        ck_assert_uint_eq(drain(&l, &b, now, &retry_at), 90);
        now += LIMIT_LEASE_AGE;
        ck_assert_uint_eq(drain(&l, &b, now, &retry_at), 50);
        /* Nine tokens that went back, in the bucket again. */
        ck_assert_uint_eq(drain(&l, &a, now, &retry_at), 9);
    }
}

/* Tokens of a lease that a change of the limit has made void pay for nothing. */
TEST(a_debt_is_not_paid_with_what_is_void)
{
    struct limit_lease mine = {0};
    limit_set(&l, 320000, 1000, START);
    ck_assert(limit_take(&l, &mine, START, &retry_at));
    ck_assert_uint_eq(mine.tokens, 63);
    limit_set(&l, 1000, 1000, START);
    double had = limit_tokens(&l, START);
    limit_owe(&l, &mine, 50, START);
    expect_between(had - limit_tokens(&l, START), 49.9, 50.1);
}

/* Who goes idle gives back what others may want: not while the bucket is half full. */
TEST(resting_keeps_what_nobody_misses)
{
    struct limit_lease a = {0}, b = {0};
    nsec_t now = START;
    limit_set(&l, 50000, 100, now);
    unsigned leases = 0;
    for (unsigned i = 0; i < 40; i++) {
        leases += a.tokens == 0;
        ck_assert(limit_take(&l, &a, now, &retry_at));
        limit_rest(&l, &a, now);
    }
    ck_assert_uint_eq(leases, 4);
    drain(&l, &b, now, &retry_at);
    now += 30 * NSEC_PER_SEC / 50000; /* less than half of it */
    ck_assert(limit_take(&l, &b, now, &retry_at));
    ck_assert_uint_eq(b.tokens, 9);
    limit_rest(&l, &b, now);
    ck_assert_uint_eq(b.tokens, 0);
    ck_assert_uint_eq(drain(&l, &a, now, &retry_at), 29);
    /* And a lease that was kept is too old in the end. */
    now += 10 * NSEC_PER_SEC;
    ck_assert(limit_take(&l, &a, now, &retry_at));
    limit_rest(&l, &a, now);
    ck_assert_uint_eq(a.tokens, 9);
    ck_assert(!limit_take_leased(&l, &a, now + LIMIT_LEASE_AGE));
}

TEST(nobody_starves_at_a_low_rate)
{
    struct limit_lease leases[4] = {0};
    uint64_t given[4] = {0};
    struct rng rng;
    rng_init(&rng, 7, 0);
    restart(4);
    limit_set(&l, 100, 1, START);
    for (nsec_t now = START; now < START + 10 * NSEC_PER_SEC; now += NSEC_PER_MSEC) {
        unsigned first = (unsigned)rng_below(&rng, 4);
        for (unsigned i = 0; i < 4; i++) {
            unsigned worker = (first + i) % 4;
            given[worker] += limit_take(&l, &leases[worker], now, &retry_at);
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_ge(given[i], 200);
    }
}

/* Random rates, bursts, workers, pauses and returns: every window conforms. */
TEST_LOOP(every_window_conforms, 4)
{
    struct rng rng;
    rng_init(&rng, 5, (uint64_t)_i);
    for (unsigned run = 0; run < 20; run++) {
        struct limit_lease leases[WORKERS_MAX] = {0};
        unsigned workers = 1 + (unsigned)rng_below(&rng, WORKERS_MAX);
        uint64_t rate = 1 + rng_below(&rng, UINT64_C(1) << (1 + rng_below(&rng, 29)));
        uint64_t burst = 1 + rng_below(&rng, 1 + rate / 1000);
        uint64_t pause = 2 * NSEC_PER_SEC / rate + 2;
        nsec_t now = START;
        struct witness w;
        restart(workers);
        limit_set(&l, rate, burst, now);
        witness_init(&w, rate, burst + workers * lease_size_of(&l));
        for (unsigned i = 0; i < 20000; i++) {
            struct limit_lease *one = &leases[rng_below(&rng, workers)];
            if (limit_take(&l, one, now, &retry_at)) {
                witness_grant(&w, now);
            }
            uint64_t what = rng_below(&rng, 1000);
            if (what < 300) {
                now += rng_below(&rng, pause);
            } else if (what < 320) {
                limit_return(&l, one, now);
            } else if (what == 999) {
                now += rng_below(&rng, 100 * pause * burst);
            }
        }
        ck_assert_uint_gt(w.count, 0);
    }
}

static const uint64_t load_rates[] = {100,   101,    997,     7777,
                                      50000, 333333, 1000000, 9999991};
static const unsigned load_workers[] = {1, 3, 16};
#define LOAD_CASES 24

/* A server under load: requests arrive at random at `offered` times the rate on random
 * workers and wait there; a refused worker comes back when it was told, or some microseconds
 * later, as timers do. */
struct load {
    struct limit limit;
    struct limit_lease leases[WORKERS_MAX];
    uint64_t backlog[WORKERS_MAX];
    nsec_t wake_at[WORKERS_MAX];
    unsigned workers;
    struct witness witness;
    struct rng rng;
};

static void
load_serve(struct load *d, unsigned worker, nsec_t now, nsec_t slack)
{
    while (d->backlog[worker] > 0) {
        if (!limit_take(&d->limit, &d->leases[worker], now, &retry_at)) {
            d->wake_at[worker] = retry_at + rng_below(&d->rng, slack);
            return;
        }
        d->backlog[worker]--;
        witness_grant(&d->witness, now);
    }
    d->wake_at[worker] = 0;
}

static nsec_t
load_run(struct load *d, nsec_t from, nsec_t until, double mean_gap, nsec_t slack)
{
    nsec_t arrival = from, now = from;
    while (now < until) {
        unsigned next = d->workers;
        now = arrival;
        for (unsigned i = 0; i < d->workers; i++) {
            if (d->backlog[i] > 0 && d->wake_at[i] < now) {
                now = d->wake_at[i];
                next = i;
            }
        }
        if (next == d->workers) {
            next = (unsigned)rng_below(&d->rng, d->workers);
            arrival += (nsec_t)(2 * mean_gap * rng_unit(&d->rng) + 0.5);
            d->backlog[next]++;
            if (d->backlog[next] > 1) {
                continue; /* it waits behind others */
            }
        }
        load_serve(d, next, now, slack);
    }
    return now;
}

TEST_LOOP(load_gets_the_rate, LOAD_CASES)
{
    uint64_t rate = load_rates[_i % 8];
    double offered = _i % 2 == 0 ? 1.05 : 1.5;
    nsec_t slack = rate < 10000 ? 1 : 50 * NSEC_PER_USEC;
    struct load d = {.workers = load_workers[_i / 8]};
    rng_init(&d.rng, 6, (uint64_t)_i);
    limit_init(&d.limit, d.workers);
    limit_set(&d.limit, rate, 0, START);
    witness_init(&d.witness, rate,
                 limit_default_burst(rate) + d.workers * lease_size_of(&d.limit));

    double gap = 1e9 / ((double)rate * offered);
    nsec_t warm = rate < 10000 ? 10 * NSEC_PER_SEC : NSEC_PER_SEC / 20;
    nsec_t window = rate < 5000000 ? NSEC_PER_SEC : NSEC_PER_SEC / 5;
    nsec_t now = load_run(&d, START, START + warm, gap, slack);
    uint64_t before = d.witness.count;
    nsec_t end = load_run(&d, now, now + window, gap, slack);
    double due = (double)rate * (double)(end - now) / 1e9;
    double given = (double)(d.witness.count - before);
    double slop = due / 100 > 1 ? due / 100 : 1.5;
    expect_between(given, due - slop, due + slop);
    limit_fini(&d.limit);
}

/* ---- threads -------------------------------------------------------------------------- */

#define THREADS 4

struct crowd {
    struct limit limit;
    _Atomic uint64_t now;
    _Atomic uint64_t given;
    _Atomic bool is_over;
    nsec_t end;
};

static void *
crowd_drain(void *arg)
{
    struct crowd *c = arg;
    struct limit_lease own = {0};
    nsec_t again;
    atomic_fetch_add(&c->given, drain(&c->limit, &own, START, &again));
    return NULL;
}

/* Moves the common clock on by a little after each attempt. */
static void *
crowd_race(void *arg)
{
    struct crowd *c = arg;
    struct limit_lease own = {0};
    uint64_t given = 0;
    nsec_t now, again;
    while ((now = atomic_fetch_add(&c->now, 7)) < c->end) {
        given += limit_take(&c->limit, &own, now, &again);
        if (now % 1024 == 0) {
            limit_return(&c->limit, &own, now);
        }
    }
    atomic_fetch_add(&c->given, given);
    return NULL;
}

static void *
crowd_change(void *arg)
{
    struct crowd *c = arg;
    for (unsigned i = 0; !atomic_load(&c->is_over); i++) {
        limit_set(&c->limit, i % 2 == 0 ? 1000000 : 2000000, 100 + i % 7,
                  atomic_load(&c->now));
    }
    return NULL;
}

static void
crowd_run(struct crowd *c, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_create(&threads[i], NULL, body, c));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_join(threads[i], NULL));
    }
}

TEST(threads_share_exactly_the_burst)
{
    struct crowd c = {0};
    limit_init(&c.limit, THREADS);
    limit_set(&c.limit, 1000, LIMIT_BURST_MAX / 2, START);
    crowd_run(&c, crowd_drain);
    ck_assert_uint_eq(atomic_load(&c.given), LIMIT_BURST_MAX / 2);
    limit_fini(&c.limit);
}

TEST(threads_share_the_rate)
{
    struct crowd c = {.end = START + NSEC_PER_SEC / 100};
    atomic_init(&c.now, START);
    limit_init(&c.limit, THREADS);
    limit_set(&c.limit, 10000000, 100, START);
    crowd_run(&c, crowd_race);
    uint64_t leases = THREADS * lease_size_of(&c.limit);
    ck_assert_uint_le(atomic_load(&c.given), 100 + 100000 + leases);
    limit_fini(&c.limit);
}

TEST(threads_take_while_the_rate_changes)
{
    struct crowd c = {.end = START + NSEC_PER_SEC / 100};
    pthread_t setter;
    atomic_init(&c.now, START);
    limit_init(&c.limit, THREADS);
    limit_set(&c.limit, 1000000, 100, START);
    PTHREAD_OK(pthread_create(&setter, NULL, crowd_change, &c));
    crowd_run(&c, crowd_race);
    atomic_store(&c.is_over, true);
    PTHREAD_OK(pthread_join(setter, NULL));
    uint64_t leases = THREADS * lease_size_of(&c.limit);
    ck_assert_uint_le(atomic_load(&c.given), 106 + 20000 + leases);
    limit_fini(&c.limit);
}
