/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Admission by queueing delay against a simulated server: Poisson arrivals, fixed service
 * times, a queue (M/D/1), loads that step up and down.
 */
#include "qos/slo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/must.h"
#include "base/rng.h"
#include "check_main.h"

#define START (1000 * NSEC_PER_SEC)
#define SERVICE (10 * NSEC_PER_USEC)
#define WINDOW (100 * NSEC_PER_MSEC)

/* ---- a queue -------------------------------------------------------------------------- */

struct queue {
    struct slo slo;
    struct slo_watch watch;
    struct rng rng;
    nsec_t service, refusal; /* what a request costs, and what refusing one does */
    nsec_t tail;             /* a reply leaves up to so much after its request's end */
    nsec_t arrival, free_at, now;
    unsigned peers;
    uint64_t offered, admitted;
    uint64_t by_peer[8];
    struct hist *delays; /* of those admitted */
};

static struct queue q;

static void
queue_start(nsec_t target, nsec_t service)
{
    q = (struct queue){.service = service, .now = START, .arrival = START, .peers = 1};
    rng_init(&q.rng, 5, 1);
    slo_init(&q.slo);
    slo_set(&q.slo, SLO_TOTAL, (struct slo_target){target, 950});
    slo_watch_init(&q.watch, &q.slo, START);
    q.delays = hist_create(7, 10 * NSEC_PER_SEC);
    must(q.delays != NULL);
}

static void
queue_end(void)
{
    hist_destroy(&q.delays);
}

static double
level(void)
{
    return (double)ctr_get(&q.watch.level) / SLO_PARTS;
}

/* Runs at a load, in parts of the capacity, until a time; what happened then is counted. */
static void
queue_run(double load, nsec_t until)
{
    q.offered = q.admitted = 0;
    memset(q.by_peer, 0, sizeof q.by_peer);
    hist_reset(q.delays);
    while (q.arrival < until) {
        nsec_t begin = q.arrival > q.free_at ? q.arrival : q.free_at;
        nsec_t delay = slo_wants_delay(&q.watch, begin) ? begin - q.arrival : SLO_UNTIMED;
        double u = (double)rng_below(&q.rng, 1000000) / 1e6;
        uint64_t peer = rng_below(&q.rng, q.peers);
        q.offered++;
        if (slo_admits(&q.watch, CLASS_SMALL, (peer + 1) * UINT64_C(0x9e3779b97f4a7c15),
                       delay, begin)) {
            q.admitted++;
            q.by_peer[peer % 8]++;
            nsec_t took = q.tail > 0 ? q.service + rng_below(&q.rng, q.tail) : 0;
            if (took > 0 && !q.watch.is_neutral) {
                slo_learn(&q.watch, CLASS_SMALL, took);
            }
            hist_record(q.delays, begin - q.arrival + took);
            q.free_at = begin + q.service;
        } else {
            q.free_at = begin + q.refusal;
        }
        q.arrival += (nsec_t)(-log(1 - u) * (double)q.service / load);
    }
    q.now = until;
}

/* Admitted, in parts of the capacity, over the last run. */
static double
admitted(nsec_t span)
{
    return (double)q.admitted * (double)q.service / (double)span;
}

/* ---- a watch alone ------------------------------------------------------------------- */

static struct slo slo;
static struct slo_watch w;

static void
watch_target(unsigned rule, nsec_t target, unsigned percentile)
{
    slo_init(&slo);
    slo_set(&slo, rule, (struct slo_target){target, percentile});
    slo_watch_init(&w, &slo, START);
}

FIXTURE(NULL, queue_end);

/* ---- the law -------------------------------------------------------------------------- */

TEST_LOOP(nobody_is_refused_below_capacity, 4)
{
    static const double loads[] = {0.1, 0.5, 0.8, 0.9};
    queue_start(500 * NSEC_PER_USEC, SERVICE);
    queue_run(loads[_i], START + 5 * NSEC_PER_SEC);
    ck_assert_uint_eq(q.admitted, q.offered);
    ck_assert_double_eq(level(), 1);
}

/* Within a second of the step to so much the delay is what it should be, and the server does
 * what it can; refusing costs a part of a service time. */
static const struct {
    double load, refusal; /* parts of the capacity, of a service time */
    nsec_t target, service;
    unsigned peers;
} overloads[] = {
    {2, 0, 500000, 10000, 1},   {1.2, 0, 500000, 10000, 1},
    {3, 0, 500000, 10000, 1},   {6, 0, 500000, 10000, 1},
    {2, 0.2, 500000, 10000, 1}, {1.2, 0.5, 500000, 10000, 1},
    {2, 0, 500000, 10000, 200}, {2, 0, 500000, 10000, 3},
    {2, 0, 100000, 2000, 1},    {2, 0, 20000000, 400000, 50},
};

TEST_LOOP(overload_is_cut, 10)
{
    double load = overloads[_i].load, refusal = overloads[_i].refusal;
    nsec_t target = overloads[_i].target;
    /* x + (load - x) * refusal = 1 */
    double possible = (1 - load * refusal) / (1 - refusal);
    queue_start(target, overloads[_i].service);
    q.peers = overloads[_i].peers;
    q.refusal = (nsec_t)(refusal * (double)q.service);
    queue_run(0.5, START + NSEC_PER_SEC);
    queue_run(load, q.now + NSEC_PER_SEC);
    double lowest = 100, highest = 0;
    bool has_many = q.service <= SERVICE; /* requests in a window: enough for a tenth */
    for (unsigned i = 0; i < 20; i++) {
        nsec_t span = has_many ? WINDOW : 20 * WINDOW;
        queue_run(load, q.now + span);
        double share = admitted(span);
        lowest = share < lowest ? share : lowest;
        highest = share > highest ? share : highest;
        /* later than the target are at most those of the floor */
        ck_assert_uint_le(hist_quantile(q.delays, 0.99), target + target / 10);
    }
    if (lowest < 0.9 * possible || highest > 1.1 * possible) {
        ck_abort_msg("admitted %.3f to %.3f, possible %.3f", lowest, highest, possible);
    }
}

/* What being served takes is taken off what waiting may take, however short the target. */
static const struct {
    nsec_t target, service, tail;
    unsigned percentile;
} short_targets[] = {{250000, 5000, 110000, 990},  {100000, 2000, 50000, 990},
                     {250000, 5000, 110000, 950},  {50000, 1000, 25000, 950},
                     {1000000, 10000, 20000, 990}, {100000, 2000, 10000, 999}};

TEST_LOOP(being_served_counts, 6)
{
    nsec_t target = short_targets[_i].target;
    unsigned percentile = short_targets[_i].percentile;
    queue_start(target, short_targets[_i].service);
    slo_set(&q.slo, SLO_TOTAL, (struct slo_target){target, percentile});
    q.tail = short_targets[_i].tail;
    queue_run(2, START + NSEC_PER_SEC / 2);
    queue_run(2, q.now + NSEC_PER_SEC);
    ck_assert_uint_le(hist_quantile(q.delays, (double)percentile / SLO_PARTS), target);
    ck_assert_double_ge(admitted(NSEC_PER_SEC), 0.9); /* and nothing is given away */
    ck_assert_double_le(admitted(NSEC_PER_SEC), 1.02);
}

TEST(patience_has_bounds)
{
    watch_target(CLASS_SMALL, NSEC_PER_MSEC, 990);
    slo_admits(&w, CLASS_SMALL, 1, 0, START);
    nsec_t most = NSEC_PER_MSEC / 100 * SLO_WAIT_PCT;
    nsec_t least = NSEC_PER_MSEC / 100 * SLO_WAIT_LEAST_PCT;
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL), most);
    for (unsigned i = 0; i < 1000; i++) { /* one that is long counts once */
        slo_learn(&w, CLASS_SMALL, i % 500 == 0 ? NSEC_PER_SEC : 20 * NSEC_PER_USEC);
    }
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL), most);
    for (unsigned i = 0; i < 1000; i++) {
        slo_learn(&w, CLASS_SMALL, UINT64_MAX);
    }
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL), least);
    for (unsigned i = 0; i < 20000; i++) {
        slo_learn(&w, CLASS_SMALL, 400 * NSEC_PER_USEC);
    }
    expect_between(slo_wait_budget(&w, CLASS_SMALL), 440 * NSEC_PER_USEC,
                   540 * NSEC_PER_USEC);
    for (unsigned i = 0; i < 20000; i++) {
        slo_learn(&w, CLASS_SMALL, 0);
    }
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL), most);
}

/* What was learned outlasts a pause, and is forgotten with the target. */
TEST(patience_is_kept)
{
    nsec_t now = START;
    slo_init(&slo);
    slo_watch_init(&w, &slo, now);
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL), 0); /* there is no target */
    slo_set(&slo, CLASS_SMALL, (struct slo_target){NSEC_PER_MSEC, 990});
    slo_admits(&w, CLASS_SMALL, 1, 0, now);
    for (unsigned i = 0; i < 1000; i++) {
        slo_learn(&w, CLASS_SMALL, 400 * NSEC_PER_USEC);
    }
    nsec_t learned = slo_wait_budget(&w, CLASS_SMALL);
    ck_assert_uint_lt(learned, NSEC_PER_MSEC / 100 * SLO_WAIT_PCT);
    now += 3600 * NSEC_PER_SEC;
    slo_admits(&w, CLASS_SMALL, 1, 0, now);
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL), learned);
    slo_set(&slo, CLASS_SMALL, (struct slo_target){2 * NSEC_PER_MSEC, 990});
    slo_admits(&w, CLASS_SMALL, 1, 0, now);
    ck_assert_uint_eq(slo_wait_budget(&w, CLASS_SMALL),
                      2 * NSEC_PER_MSEC / 100 * SLO_WAIT_PCT);
}

/* Connections that are read in turn, each with all that has come since its last turn. What is
 * refused is refused with all that came with it, which costs little. */
#define CONNS 64

static double
serve_in_turns(nsec_t last[CONNS], double load, nsec_t span)
{
    nsec_t end = q.now + span;
    uint64_t served = 0, asked = 0;
    hist_reset(q.delays);
    for (unsigned i = 0; q.now < end; i = (i + 1) % CONNS) {
        nsec_t begin = q.now;
        double rate = load / (double)q.service / CONNS;
        double mean = rate * (double)(begin - last[i]);
        unsigned n = (unsigned)(mean + (double)rng_below(&q.rng, 1000) / 1000);
        q.now += NSEC_PER_USEC; /* to look */
        asked += n;
        for (unsigned k = 0; k < n; k++) {
            nsec_t delay = q.now - last[i];
            if (!slo_admits(&q.watch, CLASS_SMALL, 7, delay, q.now)) {
                slo_refuse(&q.watch, CLASS_SMALL, n - k - 1);
                q.now += (n - k) * q.refusal;
                break;
            }
            q.now += q.service;
            served++;
            hist_record(q.delays, q.now - last[i]);
        }
        last[i] = begin;
    }
    q.arrival = q.now;
    return load <= 1 ? (double)served / (double)asked
                     : (double)(served * q.service) / (double)span;
}

TEST(batches_are_refused_as_one)
{
    nsec_t last[CONNS];
    queue_start(NSEC_PER_MSEC, 4 * NSEC_PER_USEC);
    q.refusal = q.service / 20;
    for (unsigned i = 0; i < CONNS; i++) {
        last[i] = START;
    }
    ck_assert_double_eq(serve_in_turns(last, 0.7, NSEC_PER_SEC), 1);
    for (unsigned round = 0; round < 3; round++) {
        serve_in_turns(last, 2, NSEC_PER_SEC / 2); /* until it has settled */
        for (unsigned i = 0; i < 10; i++) {
            double share = serve_in_turns(last, 2, WINDOW);
            ck_assert_double_ge(share, 0.8);
            ck_assert_uint_le(hist_quantile(q.delays, 0.99), NSEC_PER_MSEC);
        }
        serve_in_turns(last, 0.5, NSEC_PER_SEC / 2);
        ck_assert_double_eq(serve_in_turns(last, 0.5, NSEC_PER_SEC / 2), 1);
    }
}

TEST(it_recovers_within_a_second)
{
    queue_start(500 * NSEC_PER_USEC, SERVICE);
    queue_run(5, START + 2 * NSEC_PER_SEC);
    ck_assert_double_lt(level(), 0.3);
    queue_run(0.8, q.now + NSEC_PER_SEC);
    ck_assert_double_eq(level(), 1);
    queue_run(0.8, q.now + NSEC_PER_SEC);
    ck_assert_uint_eq(q.admitted, q.offered);
    /* Also when nothing comes at all. */
    queue_run(5, q.now + NSEC_PER_SEC);
    q.arrival += NSEC_PER_SEC;
    queue_run(0.5, q.arrival + NSEC_PER_SEC / 10);
    ck_assert_double_eq(level(), 1);
}

/* A pause of the machine is no overload: all are late then, and all are served. */
TEST(a_pause_refuses_nobody)
{
    queue_start(500 * NSEC_PER_USEC, SERVICE);
    for (unsigned i = 0; i < 20; i++) {
        queue_run(0.3, q.now + 50 * NSEC_PER_MSEC);
        q.free_at = q.now + 4 * NSEC_PER_MSEC;
    }
    ck_assert_double_gt(level(), 0.94);
    queue_run(0.3, q.now + 50 * NSEC_PER_MSEC);
    ck_assert_uint_ge(q.admitted, q.offered * 95 / 100);
}

/* Of a class whose waiting is known only when it is over as well. */
TEST(a_deferred_class_recovers_within_a_second)
{
    nsec_t now = START;
    watch_target(CLASS_BULK, NSEC_PER_MSEC, 990);
    for (unsigned i = 0; i < 20000; i++, now += 50 * NSEC_PER_USEC) {
        slo_observe(&w, CLASS_BULK, NSEC_PER_SEC, now);
        slo_admits(&w, CLASS_BULK, 1, SLO_UNTIMED, now);
    }
    ck_assert_uint_le(ctr_get(&w.level), SLO_PARTS / 10);
    for (unsigned i = 0; i < 20000; i++, now += 50 * NSEC_PER_USEC) {
        slo_observe(&w, CLASS_BULK, NSEC_PER_MSEC / 10, now);
        slo_admits(&w, CLASS_BULK, 1, SLO_UNTIMED, now);
    }
    ck_assert_uint_eq(ctr_get(&w.level), SLO_PARTS);
    for (unsigned i = 0; i < 20000; i++, now += 50 * NSEC_PER_USEC) {
        slo_observe(&w, CLASS_BULK, NSEC_PER_MSEC / 10, now);
        ck_assert(slo_admits(&w, CLASS_BULK, 1, SLO_UNTIMED, now));
    }
}

/* Requests of a class that are all late, and others, for a second. */
static nsec_t
overload(enum req_class late, nsec_t now, uint64_t served[CLASS_COUNT])
{
    for (unsigned i = 0; i < 20000; i++, now += 50 * NSEC_PER_USEC) {
        slo_observe(&w, late, NSEC_PER_SEC, now);
        for (unsigned c = CLASS_SMALL; c < CLASS_COUNT; c++) {
            nsec_t delay = c == late ? NSEC_PER_SEC : SLO_UNTIMED;
            bool is_served = slo_admits(&w, (enum req_class)c, 1, delay, now);
            served[c] += i >= 19000 && is_served;
        }
    }
    return now;
}

/* Those for whose sake others were refused have gone: a rule that nobody feeds any more ends. */
TEST_LOOP(who_has_gone_refuses_nobody, CLASS_COUNT - CLASS_WRITE)
{
    enum req_class c = CLASS_WRITE + (enum req_class)_i;
    uint64_t served[CLASS_COUNT] = {0}, asked = 0;
    nsec_t now = START;
    watch_target(CLASS_WRITE, NSEC_PER_MSEC, 990);
    now = overload(CLASS_WRITE, now, served);
    ck_assert_uint_lt(served[CLASS_WRITE], 1000);
    ck_assert_uint_eq(served[CLASS_BULK] + served[CLASS_BACKGROUND], 0);
    served[c] = 0;
    for (unsigned i = 0; i < 1000; i++, now += NSEC_PER_MSEC) {
        bool is_served = slo_admits(&w, c, 1, SLO_UNTIMED, now);
        asked += i >= 250;
        served[c] += i >= 250 && is_served;
    }
    ck_assert_uint_eq(served[c], asked);
    ck_assert_uint_eq(ctr_get(&w.level), SLO_PARTS);
    ck_assert(w.is_neutral);
}

/* What is shown of a queue that nobody is in any more; beside a long target that nobody was late
 * for, too. */
TEST_LOOP(the_level_ends_with_the_load, 2)
{
    uint64_t served[CLASS_COUNT] = {0};
    watch_target(CLASS_SMALL, NSEC_PER_MSEC, 990);
    slo_set(&slo, CLASS_BULK, (struct slo_target){_i * NSEC_PER_SEC, 990});
    ck_assert_uint_eq(slo_level(&w, START), SLO_PARTS);
    nsec_t now = overload(CLASS_SMALL, START, served);
    ck_assert_uint_le(slo_level(&w, now), SLO_PARTS / 10);
    ck_assert_uint_le(slo_level(&w, now + SLO_INTERVAL), SLO_PARTS / 10);
    ck_assert_uint_eq(slo_level(&w, now + NSEC_PER_SEC / 4), SLO_PARTS);
    ck_assert(slo_admits(&w, CLASS_BACKGROUND, 1, SLO_UNTIMED, now + NSEC_PER_SEC / 4));
}

/* ---- whom it refuses ------------------------------------------------------------------ */

/* Of those that a target makes go: background, then bulk, then the class itself; never small. */
TEST(classes_go_in_order)
{
    nsec_t now = START;
    uint64_t refused[CLASS_COUNT] = {0}, first[CLASS_COUNT] = {0};
    watch_target(CLASS_WRITE, NSEC_PER_MSEC, 990);
    slo_set(&slo, CLASS_SMALL, (struct slo_target){NSEC_PER_MSEC, 990});
    for (unsigned i = 0; i < 40000; i++, now += 20 * NSEC_PER_USEC) {
        slo_observe(&w, CLASS_WRITE, 5 * NSEC_PER_MSEC, now);
        for (unsigned c = CLASS_SMALL; c < CLASS_COUNT; c++) {
            bool is_served = slo_admits(&w, (enum req_class)c, 1,
                                        c == CLASS_SMALL ? 0 : SLO_UNTIMED, now);
            refused[c] += !is_served;
            first[c] = first[c] == 0 && !is_served ? i : first[c];
        }
    }
    ck_assert_uint_eq(refused[CLASS_SMALL], 0);
    ck_assert_uint_gt(first[CLASS_BULK], first[CLASS_BACKGROUND]);
    ck_assert_uint_gt(first[CLASS_WRITE], first[CLASS_BULK]);
    ck_assert_uint_gt(refused[CLASS_BACKGROUND], refused[CLASS_BULK]);
    ck_assert_uint_gt(refused[CLASS_BULK], refused[CLASS_WRITE]);
    ck_assert_uint_lt(refused[CLASS_WRITE],
                      35000); /* the floor: a tenth of three classes */
}

/* Those below have their shares of the worker's time, whatever becomes of small requests. */
TEST(late_small_requests_are_not_bulks_business)
{
    uint64_t served[CLASS_COUNT] = {0};
    watch_target(SLO_TOTAL, NSEC_PER_MSEC, 990);
    overload(CLASS_SMALL, START, served);
    ck_assert_uint_lt(served[CLASS_SMALL], 200);
    for (unsigned c = CLASS_WRITE; c < CLASS_COUNT; c++) {
        ck_assert_uint_eq(served[c], 1000);
    }
}

/* A target of the lower class is not the higher one's business. */
TEST(a_class_pays_for_its_own_target)
{
    watch_target(CLASS_BULK, NSEC_PER_MSEC, 990);
    uint64_t bulk = 0;
    for (unsigned i = 0; i < 100000; i++) {
        nsec_t now = START + i * 10 * NSEC_PER_USEC;
        slo_observe(&w, CLASS_BULK, 5 * NSEC_PER_MSEC + i * NSEC_PER_USEC, now);
        ck_assert(slo_admits(&w, CLASS_SMALL, 1, 0, now));
        bulk += slo_admits(&w, CLASS_BULK, 1, 0, now);
    }
    ck_assert_uint_lt(bulk, 30000);
    ck_assert_uint_gt(bulk, 9000); /* the floor */
}

/* Each time the one request that is measured has slept with the machine, the others are not. */
TEST(suspensions_refuse_nobody)
{
    nsec_t now = START;
    watch_target(SLO_TOTAL, NSEC_PER_SEC, 950);
    for (unsigned i = 0; i < 8; i++) {
        nsec_t slept = (UINT64_C(1) << 2 * i) * 100 * NSEC_PER_SEC;
        now += slept;
        ck_assert(slo_admits(&w, CLASS_SMALL, 1, slept, now));
        for (unsigned k = 0; k < 15; k++) {
            ck_assert(slo_admits(&w, CLASS_SMALL, 1, SLO_UNTIMED, now));
        }
    }
}

TEST(many_addresses_are_told_apart)
{
    queue_start(500 * NSEC_PER_USEC, SERVICE);
    q.peers = 8;
    queue_run(2, START + NSEC_PER_SEC);
    queue_run(2, q.now + NSEC_PER_SEC);
    uint64_t fair = q.offered / 8;
    unsigned served = 0, refused = 0;
    for (unsigned i = 0; i < 8; i++) {
        served += q.by_peer[i] > fair * 8 / 10;
        refused += q.by_peer[i] < fair * 2 / 10;
    }
    ck_assert_uint_ge(served, 2);
    ck_assert_uint_ge(refused, 2);
}

/* Some may wait half as long as others, whatever the target. */
TEST_LOOP(addresses_are_told_apart_by_any_target, 5)
{
    static const nsec_t targets[] = {60 * NSEC_PER_USEC, 150 * NSEC_PER_USEC,
                                     500 * NSEC_PER_USEC, 5 * NSEC_PER_MSEC,
                                     3600 * NSEC_PER_SEC};
    queue_start(targets[_i], SERVICE);
    struct slo_watch *watch = &q.watch;
    ck_assert(slo_judge(watch, CLASS_SMALL, 0, 0, START)); /* it begins */
    watch->band = 8192;
    watch->rules[CLASS_SMALL].is_overloaded = true;
    nsec_t most = slo_wait_budget(watch, CLASS_SMALL), half = most / 2 + most / 100;
    ck_assert(slo_judge(watch, CLASS_SMALL, 0, half, START));
    ck_assert(!slo_judge(watch, CLASS_SMALL, UINT64_C(0xffff) << 16, half, START));
}

/* ---- settings and clocks -------------------------------------------------------------- */

TEST(off_ends_it)
{
    queue_start(500 * NSEC_PER_USEC, SERVICE);
    queue_run(3, START + NSEC_PER_SEC);
    ck_assert_double_lt(level(), 0.5);
    slo_set(&q.slo, SLO_TOTAL, (struct slo_target){0});
    ck_assert(!slo_is_on(&q.slo));
    slo_set(&q.slo, SLO_TOTAL, (struct slo_target){NSEC_PER_SEC, 950});
    q.free_at = q.arrival = q.now + NSEC_PER_SEC;
    queue_run(0.5, q.now + 2 * NSEC_PER_SEC);
    ck_assert_double_eq(level(), 1);
}

TEST_LOOP(any_clock_is_safe, 4)
{
    struct rng rng;
    rng_init(&rng, 3, (uint64_t)_i);
    watch_target(SLO_TOTAL, 1000, 500);
    slo_set(&slo, CLASS_BULK, (struct slo_target){3600 * NSEC_PER_SEC, 999});
    nsec_t now = START;
    uint64_t served = 0;
    for (unsigned i = 0; i < 200000; i++) {
        uint64_t what = rng_below(&rng, 100);
        now = what == 0   ? rng_below(&rng, UINT64_MAX)
              : what == 1 ? now / 2
                          : now + rng_below(&rng, NSEC_PER_MSEC);
        nsec_t delay = what == 2 ? UINT64_MAX : rng_below(&rng, UINT64_C(1) << what % 60);
        served +=
            slo_admits(&w, what % 2 == 0 ? CLASS_SMALL : CLASS_BULK, what, delay, now);
        slo_observe(&w, CLASS_BULK, delay, now);
    }
    ck_assert_uint_gt(served, 2000);
    ck_assert_uint_le(ctr_get(&w.level), SLO_PARTS);
}

TEST(targets_are_read)
{
    static const char *const wrong[] = {"",
                                        "p95",
                                        "95:1ms",
                                        "p95:",
                                        "p95:1",
                                        "p49:1ms",
                                        "p100:1ms",
                                        "p99.99:1ms",
                                        "p95:0ms",
                                        "p.5:1ms",
                                        "p95:1h",
                                        "total=",
                                        "x=off",
                                        "p95:1ms,",
                                        "p95:5000s",
                                        "control=p95:1ms",
                                        "p95:1ms,p95:1ms",
                                        "p95:1ms,total=off",
                                        "bulk=p95:1ms,bulk=p95:1ms"};
    struct slo_target t[SLO_RULES] = {0};
    const char *text = "p95:500us,bulk=p99.9:20ms,small=off";
    ck_assert_ptr_null(slo_parse(text, strlen(text), t));
    ck_assert_uint_eq(t[SLO_TOTAL].ns, 500 * NSEC_PER_USEC);
    ck_assert_uint_eq(t[SLO_TOTAL].percentile, 950);
    ck_assert_uint_eq(t[CLASS_BULK].ns, 20 * NSEC_PER_MSEC);
    ck_assert_uint_eq(t[CLASS_BULK].percentile, 999);
    ck_assert_uint_eq(t[CLASS_SMALL].ns, 0);
    static const char *const reported[] = {"off", "p95:500us", "p99.9:20000us",
                                           "p50:1500ns"};
    for (unsigned i = 0; i < sizeof reported / sizeof reported[0]; i++) {
        char to[SLO_TEXT_MAX];
        ck_assert_ptr_null(slo_parse(reported[i], strlen(reported[i]), t));
        ck_assert_str_eq(slo_describe(t[SLO_TOTAL], to), reported[i]);
    }
    expect_each(word, wrong, slo_parse(word, strlen(word), t) != NULL);
}
