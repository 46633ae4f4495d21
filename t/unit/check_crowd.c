/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Crowded CPUs: who counts as crowded and for how long, that one worker never does.
 */
#include "qos/crowd.h"

#include "base/rng.h"
#include "check_main.h"

#define WINDOW (100 * NSEC_PER_MSEC)
#define WORKERS_MAX 4

static struct crowd c;
static struct crowd_sample samples[WORKERS_MAX];
static uint64_t used[WORKERS_MAX];
static bool told[WORKERS_MAX]; /* crowded, by what was said to have changed */

static void
start(unsigned workers)
{
    crowd_fini(&c);
    ck_assert(crowd_init(&c, workers));
    for (unsigned i = 0; i < workers; i++) {
        samples[i] = (struct crowd_sample){.cpu = (int)i};
        used[i] = NSEC_PER_SEC;
        told[i] = false;
    }
}

struct share {
    double run, wait, others;
};

/* Windows in which the workers do this. */
static void
pass(unsigned windows, const struct share *shares)
{
    for (; windows > 0; windows--) {
        bool is_asked = crowd_wants_used(&c);
        for (unsigned i = 0; i < c.count; i++) {
            samples[i].run_ns += (uint64_t)(shares[i].run * WINDOW);
            samples[i].wait_ns += (uint64_t)(shares[i].wait * WINDOW);
            for (unsigned k = 0; k < c.count; k++) {
                used[i] += samples[k].cpu == samples[i].cpu
                               ? (uint64_t)(shares[k].run * WINDOW)
                               : 0;
            }
            used[i] += (uint64_t)(shares[i].others * WINDOW);
            samples[i].used_ns = is_asked ? used[i] : 0;
        }
        crowd_step(&c, samples, WINDOW);
        for (unsigned i = 0; i < c.count; i++) {
            const struct crowd_worker *w = &c.workers[i];
            told[i] = w->has_changed ? w->is_crowded : told[i];
            expect(told[i] == w->is_crowded);
        }
    }
}

static bool
is_crowded(unsigned worker)
{
    return c.workers[worker].is_crowded;
}

TEST_LOOP(who_is_crowded, 8)
{
    static const struct {
        struct share shares[2];
        bool is_crowded;
    } cases[] = {
        {{{0.07, 0.06, 0.9}, {0.05, 0.07, 0.2}},
         true},                                     /* a batch job beside little work */
        {{{0.5, 0.45, 0.5}, {0.5, 0.01, 0}}, true}, /* ... and beside much */
        {{{0.07, 0.06, 0.9}, {0.05, 0.07, 0.9}}, false}, /* nobody has it better */
        {{{0.07, 0.06, 0.9}, {0.05, 0.07, 0.7}}, false}, /* ... or hardly */
        {{{0.1, 0.002, 0.9}, {0.1, 0, 0}}, false},       /* it does not wait */
        {{{0.5, 0.08, 0.5}, {0.5, 0, 0}}, false},        /* ... for long */
        {{{0.1, 0.1, 0.35}, {0.1, 0, 0}}, false},        /* others have little of it */
        {{{0, 0, 1}, {0.1, 0, 0}}, false},               /* nobody asks it anything */
    };
    start(2);
    pass(30, cases[_i].shares);
    ck_assert_int_eq(is_crowded(0), cases[_i].is_crowded);
    ck_assert(!is_crowded(1));
}

/* Not for a moment's sake; and nobody reads what the CPUs do while nothing is suspected. */
TEST(it_takes_a_while)
{
    static const struct share calm[2] = {{0.1, 0.001, 0}, {0.1, 0.001, 0}};
    static const struct share loud[2] = {{0.1, 0.1, 0.9}, {0.1, 0.001, 0}};
    start(2);
    pass(10, calm);
    ck_assert(!crowd_wants_used(&c));
    for (unsigned i = 0; i < 10; i++) {
        pass(2, loud);
        ck_assert(!is_crowded(0));
        pass(8, calm);
    }
    unsigned windows = 0;
    while (!is_crowded(0) && windows < 20) {
        pass(1, loud);
        windows++;
        ck_assert_int_eq(c.workers[0].has_changed, is_crowded(0));
    }
    expect_between(windows, CROWD_WINDOWS, CROWD_WINDOWS + 3);
    pass(1, loud);
    ck_assert(!c.workers[0].has_changed);
}

/* It has been left, so it no longer waits, and yet is crowded until the others have gone. */
TEST(it_ends_when_the_cpu_is_free)
{
    static const struct share loud[2] = {{0.1, 0.1, 0.9}, {0.1, 0, 0}};
    static const struct share left[2] = {{0, 0, 1}, {0.2, 0, 0}};
    static const struct share less[2] = {{0, 0, 0.3}, {0.2, 0, 0}};
    static const struct share gone[2] = {{0, 0, 0.1}, {0.2, 0, 0}};
    start(2);
    pass(20, loud);
    pass(100, left);
    ck_assert(is_crowded(0));
    pass(100, less);
    ck_assert(is_crowded(0));
    pass(CROWD_FREE_WINDOWS - 1, gone);
    ck_assert(is_crowded(0));
    pass(5, gone);
    ck_assert(!is_crowded(0));
    pass(1, gone);
    ck_assert(!crowd_wants_used(&c));
}

/* Workers that share a CPU with each other only are no crowd. */
TEST(siblings_are_no_others)
{
    static const struct share shares[3] = {{0.5, 0.5, 0}, {0.6, 0, 0}, {0.5, 0.5, 0}};
    static const struct share loud[3] = {{0.3, 0.5, 0.6}, {0.6, 0, 0}, {0.1, 0.2, 0.6}};
    start(3);
    samples[2].cpu = 0;
    used[2] = used[0];
    pass(50, shares);
    ck_assert(!is_crowded(0) && !is_crowded(1) && !is_crowded(2));
    pass(20, loud);
    ck_assert(is_crowded(0) && !is_crowded(1) && is_crowded(2));
}

/* Whatever happens, somebody is left to take connections. */
TEST_LOOP(never_all, 20)
{
    struct rng rng;
    struct share shares[WORKERS_MAX];
    start(1 + (unsigned)_i % WORKERS_MAX);
    rng_init(&rng, 11, (uint64_t)_i);
    for (unsigned n = 0; n < 500; n++) {
        unsigned crowded = 0;
        for (unsigned i = 0; n % 20 == 0 && i < c.count; i++) {
            double others = rng_unit(&rng);
            shares[i] =
                (struct share){0.2 * rng_unit(&rng), 0.2 * rng_unit(&rng), others};
        }
        pass(1, shares);
        for (unsigned i = 0; i < c.count; i++) {
            crowded += is_crowded(i);
        }
        ck_assert_uint_lt(crowded, c.count);
    }
}

/* One that is free again and in the same window has to take the other's: that it changed is told. */
TEST(free_and_needed_at_once)
{
    static const struct share crowded = {0.07, 0.06, 0.9}, calm = {0.05, 0.01, 0};
    const struct share first[] = {crowded, calm}, second[] = {calm, crowded};
    for (unsigned windows = 1; windows < 40; windows++) {
        start(2);
        pass(40, first);
        pass(windows, (const struct share[]){calm, calm});
        pass(40, second);
        pass(windows, first);
    }
}

/* What the kernel does not tell, a CPU that changes, sums that go back. */
TEST(odd_samples_are_harmless)
{
    static const struct share loud[2] = {{0.1, 0.1, 0.9}, {0.1, 0, 0}};
    start(2);
    samples[0].cpu = -1;
    pass(30, loud);
    ck_assert(!is_crowded(0));
    samples[0].cpu = 0;
    pass(20, loud);
    ck_assert(is_crowded(0));
    samples[0].cpu = 3; /* bound anew, to a CPU of its own */
    static const struct share alone[2] = {{0.1, 0, 0}, {0.1, 0, 0}};
    pass(CROWD_FREE_WINDOWS + 2, alone);
    ck_assert(!is_crowded(0));
    used[0] = 1;
    samples[0].wait_ns = samples[0].run_ns = 0;
    pass(1, loud);
    ck_assert(!is_crowded(0));
}
