/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The controller of CPU time, against a process whose requests cost what the test says; and
 * the gauge of headroom.
 */
#include "qos/cpushare.h"

#include <stdlib.h>

#include "base/rng.h"
#include "qos/headroom.h"
#include "check_main.h"

#define START (1000 * NSEC_PER_SEC)

/* A process: what comes, what it costs. */
struct process {
    struct cpushare share;
    struct rng rng;
    nsec_t now, cpu;
    uint64_t requests;
    double offered, cost_s, background; /* a second, seconds, CPUs */
};

/* One period; returns the share of a CPU that was used in it. */
static double
period(struct process *p)
{
    uint64_t rate = cpushare_step(&p->share, p->now, p->cpu, p->requests);
    double served = rate != 0 && (double)rate < p->offered ? (double)rate : p->offered;
    double noise = 0.95 + (double)rng_below(&p->rng, 100) / 1000;
    double used = served * p->cost_s * noise + p->background;
    if (used > 1) {
        served /= used;
        used = 1;
    }
    p->now += CPUSHARE_PERIOD;
    p->cpu += (nsec_t)(used * (double)CPUSHARE_PERIOD);
    p->requests += (uint64_t)(served * 0.1);
    return used;
}

static double
average(struct process *p, unsigned periods)
{
    double sum = 0;
    for (unsigned i = 0; i < periods; i++) {
        sum += period(p);
    }
    return sum / periods;
}

static struct process
process_start(unsigned percent, double offered, double cost_us)
{
    struct process p = {.now = START, .offered = offered, .cost_s = cost_us / 1e6};
    rng_init(&p.rng, 9, percent);
    cpushare_set(&p.share, percent);
    return p;
}

TEST_LOOP(the_share_is_kept, 4)
{
    static const unsigned percents[] = {5, 20, 40, 70};
    struct process p = process_start(percents[_i], 1e6, 10);
    average(&p, 15);
    double used = average(&p, 50);
    expect_between(used, percents[_i] * 0.0097, percents[_i] * 0.0103);
}

TEST(it_follows_what_requests_cost)
{
    struct process p = process_start(40, 1e6, 10);
    average(&p, 20);
    p.cost_s *= 3;
    average(&p, 15);
    double used = average(&p, 50);
    expect_between(used, 0.388, 0.412);
    p.cost_s /= 10;
    average(&p, 20);
    used = average(&p, 50);
    expect_between(used, 0.388, 0.412);
}

/* Steps too small to be told add up. */
TEST(a_slow_change_is_followed)
{
    struct process p = process_start(40, 1e6, 10);
    unsigned changes = 0;
    average(&p, 50);
    for (unsigned i = 0; i < 400; i++) {
        uint64_t before = p.share.given;
        p.cost_s *= 1.002;
        period(&p);
        changes += p.share.given != before;
        double left = p.share.rate / (double)p.share.given;
        expect_between(left, 0.994, 1.006);
    }
    ck_assert_uint_ge(changes, 50);
}

TEST(a_rate_that_hardly_moves_is_left_alone)
{
    struct cpushare share = {.percent = 0};
    nsec_t now = START;
    cpushare_set(&share, 50);
    (void)cpushare_step(&share, now, 0, 0);
    uint64_t first =
        cpushare_step(&share, now += CPUSHARE_PERIOD, 50 * NSEC_PER_MSEC, 10000);
    ck_assert_uint_eq(first, 100000);
    uint64_t second =
        cpushare_step(&share, now += CPUSHARE_PERIOD, 100 * NSEC_PER_MSEC, 20100);
    ck_assert_uint_eq(second, first);
    ck_assert_uint_gt((uint64_t)share.rate, first);
}

TEST(other_threads_count)
{
    struct process p = process_start(40, 1e6, 10);
    p.background = 0.1;
    average(&p, 30);
    double used = average(&p, 50);
    expect_between(used, 0.388, 0.412);
}

/* A quiet time neither winds the rate up nor down. */
TEST(it_does_not_bind_below)
{
    struct process p = process_start(40, 10000, 10);
    average(&p, 100);
    uint64_t rate = cpushare_step(&p.share, p.now, p.cpu, p.requests);
    ck_assert_uint_ge(rate, 20000);
    p.offered = 0;
    average(&p, 100);
    p.offered = 1e6;
    average(&p, 15);
    double used = average(&p, 50);
    expect_between(used, 0.388, 0.412);
}

/* Without room for a single request some are served nevertheless. */
TEST(there_is_a_least_rate)
{
    struct process p = process_start(1, 1e6, 10);
    p.background = 0.5;
    average(&p, 200);
    ck_assert_uint_eq(cpushare_step(&p.share, p.now, p.cpu, p.requests),
                      CPUSHARE_RATE_LEAST);
}

TEST(any_clock_is_safe)
{
    struct process p = process_start(40, 1e5, 10);
    average(&p, 20);
    uint64_t rate = p.share.given;
    ck_assert_uint_eq(cpushare_step(&p.share, p.now - NSEC_PER_SEC, p.cpu, p.requests),
                      rate);
    ck_assert_uint_eq(cpushare_step(&p.share, 0, 0, 0), rate);
    ck_assert_uint_eq(cpushare_step(&p.share, UINT64_MAX, 0, UINT64_MAX), p.share.given);
    cpushare_set(&p.share, 0);
    ck_assert_uint_eq(cpushare_step(&p.share, p.now, p.cpu, p.requests), 0);
}

/* ---- headroom ------------------------------------------------------------------------- */

TEST(room_is_what_is_not_used)
{
    struct headroom_mark from = {START, 5 * NSEC_PER_SEC, 1000};
    struct headroom_mark to = {START + 2 * NSEC_PER_SEC, 6 * NSEC_PER_SEC, 101000};
    struct headroom h = headroom_between(&from, &to);
    ck_assert_double_eq_tol(h.rate, 50000, 0.1);
    ck_assert_double_eq_tol(h.capacity, 100000, 0.1);
    ck_assert_double_eq_tol(h.utilisation, 0.5, 1e-6);
    ck_assert_double_eq_tol(h.p95_us, 60, 1e-6);
    struct headroom sum = {0};
    headroom_add(&sum, &h);
    headroom_add(&sum, &h);
    ck_assert_double_eq_tol(sum.capacity, 200000, 0.1);
    ck_assert_double_eq_tol(sum.utilisation, 0.5, 1e-6);
    ck_assert_double_eq_tol(sum.p95_us, 60, 1e-6);
}

TEST(nothing_is_known_of_an_idle_worker)
{
    struct headroom_mark from = {START, 5, 1000}, to = {START + 1, 5, 1000};
    struct headroom h = headroom_between(&from, &to);
    ck_assert_double_eq(h.capacity, 0);
    ck_assert_double_eq(h.utilisation, 0);
    h = headroom_between(&to, &from); /* backwards */
    ck_assert_double_eq(h.capacity, 0);
    to = (struct headroom_mark){START + 10, 25, 2000}; /* busy for longer than it took */
    h = headroom_between(&from, &to);
    ck_assert_double_eq(h.utilisation, 1);
    ck_assert_double_eq(h.p95_us, 0);
}

TEST(busy_without_requests_is_busy)
{
    struct headroom_mark from = {START, 0, 7}, to = {START + 100, 80, 7}, idle = from;
    struct headroom sum = {0}, h = headroom_between(&from, &to);
    ck_assert_double_eq_tol(h.utilisation, 0.8, 1e-6);
    ck_assert_double_eq(h.rate, 0);
    ck_assert_double_eq(h.capacity, 0);
    idle.at += 100;
    headroom_add(&sum, &h);
    for (unsigned i = 0; i < 3; i++) {
        h = headroom_between(&from, &idle);
        headroom_add(&sum, &h);
    }
    ck_assert_uint_eq(sum.workers, 4);
    ck_assert_double_eq_tol(sum.utilisation, 0.2, 1e-6);
}

/* A worker that is busy for a tenth of the time, and serves a request each 10 us then. */
static struct headroom_mark
mark_at(nsec_t since_start)
{
    return (struct headroom_mark){START + since_start, since_start / 10,
                                  since_start / 10 / 10000};
}

TEST(window_is_the_servers)
{
    struct headroom_window w;
    struct headroom_mark now = mark_at(0);
    headroom_begin(&w, &now);
    ck_assert_double_eq(headroom_now(&w, &now).capacity, 0); /* at the very start */
    now = mark_at(NSEC_PER_SEC / 100);                       /* the first that asks */
    ck_assert_double_eq_tol(headroom_now(&w, &now).utilisation, 0.1, 1e-6);
    ck_assert_double_eq_tol(headroom_now(&w, &now).rate, 10000, 1e-3);
    headroom_tick(&w, &now); /* too early */
    ck_assert_uint_eq(w.last.at, START);
    for (unsigned s = 1; s <= 5; s++) {
        now = mark_at(s * HEADROOM_TICK);
        headroom_tick(&w, &now);
        ck_assert_uint_eq(w.before.at, START + (s - 1) * HEADROOM_TICK);
    }
    /* Then it is busy all the time: who asks sees the same however often others have. */
    for (unsigned ask = 0; ask <= 10; ask++) {
        nsec_t more = ask * HEADROOM_TICK / 10;
        now = mark_at(5 * HEADROOM_TICK);
        now.at += more;
        now.busy_ns += more;
        double busy = 0.1 * (double)HEADROOM_TICK + (double)more;
        double want = busy / (double)(HEADROOM_TICK + more);
        ck_assert_double_eq_tol(headroom_now(&w, &now).utilisation, want, 1e-6);
    }
}
