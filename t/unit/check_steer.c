/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Steering: which worker a connection of a CPU or receive queue goes to, how near workers
 * stand, when one has too many, and what the kernel's table says.
 */
#include "qos/steer.h"

#include <unistd.h>

#include "check_main.h"

#define CPUS 16
#define WORKERS_MAX 16

static struct steer_map map;
static struct steer steer;
static _Atomic unsigned loads[WORKERS_MAX];

/* A machine of two nodes with two caches each and four CPUs under every cache. */
static void
place(const int *cpus, unsigned count, enum steer_mode mode)
{
    struct cpu_place known[CPUS], places[WORKERS_MAX];
    for (int i = 0; i < CPUS; i++) {
        known[i] = (struct cpu_place){
            .cpu = i, .package = i / 8, .llc = i / 4, .numa = i / 8, .core = i};
    }
    for (unsigned i = 0; i < count; i++) {
        places[i] =
            cpus[i] >= 0 ? known[cpus[i]] : (struct cpu_place){-1, -1, -1, -1, -1};
        atomic_store(&loads[i], 0);
    }
    steer_map_fini(&map);
    ck_assert(steer_map_init(&map, places, count, known, CPUS));
    steer_init(&steer, mode, &map, 0, 1);
}

static unsigned
pick(int cpu)
{
    struct steer_hint hint = {.cpu = cpu, .given = -1};
    unsigned worker = steer_pick(&steer, &hint, loads);
    ck_assert_uint_lt(worker, map.count);
    return worker;
}

static unsigned
pick_queue(unsigned napi, int cpu)
{
    struct steer_hint hint = {.cpu = cpu, .napi = napi, .given = -1};
    return steer_pick(&steer, &hint, loads);
}

TEST(modes_have_names)
{
    for (unsigned i = 0; i < STEER_MODES; i++) {
        enum steer_mode mode;
        ck_assert(steer_mode_parse(steer_mode_name((enum steer_mode)i), &mode));
        ck_assert_uint_eq(mode, i);
    }
    enum steer_mode mode;
    ck_assert(!steer_mode_parse("", &mode));
    ck_assert(!steer_mode_parse("cpus", &mode));
}

TEST(each_in_turn)
{
    int cpus[] = {0, 1, 2};
    place(cpus, 3, STEER_RR);
    for (unsigned i = 0; i < 9; i++) {
        ck_assert_uint_eq(pick(2), i % 3);
    }
    ck_assert_uint_eq(ctr_get(&steer.local) + ctr_get(&steer.fallback), 0);
}

TEST(the_worker_of_the_cpu)
{
    int cpus[] = {3, 9, 6};
    place(cpus, 3, STEER_CPU);
    ck_assert(steer_map_is_pinned(&map));
    ck_assert_uint_eq(pick(3), 0);
    ck_assert_uint_eq(pick(9), 1);
    ck_assert_uint_eq(pick(6), 2);
    ck_assert_uint_eq(ctr_get(&steer.local), 3);
    steer_map_move(&map, 1, 12);
    ck_assert_uint_eq(pick(12), 1);
    ck_assert_uint_eq(ctr_get(&steer.local), 4);
}

TEST(else_the_nearest)
{
    int cpus[] = {0, 5, 8};
    place(cpus, 3, STEER_CPU);
    ck_assert_uint_eq(pick(1), 0);  /* same cache as 0 */
    ck_assert_uint_eq(pick(7), 1);  /* same cache as 5 */
    ck_assert_uint_eq(pick(15), 2); /* the node of 8 alone */
    ck_assert_uint_eq(ctr_get(&steer.near), 3);
    ck_assert_uint_eq(ctr_get(&steer.local), 0);
}

/* Of equally near ones the one with fewer connections. */
TEST(among_equals_the_emptier)
{
    int cpus[] = {0, 0, 1, 2};
    place(cpus, 4, STEER_CPU);
    atomic_store(&loads[0], 3);
    ck_assert_uint_eq(pick(0), 1);
    atomic_store(&loads[1], 4);
    ck_assert_uint_eq(pick(0), 0);
    atomic_store(&loads[2], 1);
    ck_assert_uint_eq(pick(3), 3);
}

TEST(unknown_falls_back)
{
    int far[] = {0, 1};
    place(far, 2, STEER_CPU);
    atomic_store(&loads[0], 2);
    ck_assert_uint_eq(pick(-1), 1);   /* a UNIX socket: of the two the emptier */
    ck_assert_uint_eq(pick(12), 1);   /* the other node */
    ck_assert_uint_eq(pick(4000), 1); /* beyond what is known */
    ck_assert_uint_eq(ctr_get(&steer.fallback), 3);
    int unpinned[] = {-1, -1};
    place(unpinned, 2, STEER_CPU);
    ck_assert(!steer_map_is_pinned(&map));
    pick(0);
    ck_assert_uint_eq(ctr_get(&steer.fallback), 1);
}

/* Everything comes from one CPU: its worker keeps a quarter more than its share, then the one
 * beside it does, and the others have the rest. */
TEST(a_pile_overflows)
{
    int cpus[] = {0, 1, 8, 9};
    place(cpus, 4, STEER_CPU);
    unsigned overflown = 0;
    for (unsigned i = 1; i <= 1000; i++) {
        unsigned worker = pick(1);
        overflown += worker != 1;
        atomic_fetch_add(&loads[worker], 1);
    }
    ck_assert_uint_eq(ctr_get(&steer.overflow), overflown);
    ck_assert_uint_eq(ctr_get(&steer.overflow) + ctr_get(&steer.local), 1000);
    ck_assert_uint_eq(atomic_load(&loads[1]), 1000 / 4 * 5 / 4 + 2);
    ck_assert_uint_eq(atomic_load(&loads[0]), 1000 / 4 * 5 / 4 + 2);
    ck_assert_uint_ge(atomic_load(&loads[2]), 180);
    ck_assert_uint_ge(atomic_load(&loads[3]), 180);
}

/* Wherever connections come from, and whoever leaves: who gets one has no more than a quarter
 * above the mean, and two. */
TEST_LOOP(nobody_gets_more_than_a_share, 48)
{
    int cpus[] = {0, 1, 5, 8, 9, 15};
    struct rng rng;
    unsigned count = 1 + (unsigned)_i % 6;
    rng_init(&rng, 5, (uint64_t)_i);
    place(cpus, count, STEER_CPU);
    for (unsigned i = 0; i < 4000; i++) {
        unsigned at = (unsigned)rng_below(&rng, count), sum = 0;
        if (rng_below(&rng, 3) == 0 && atomic_load(&loads[at]) > 0) {
            atomic_fetch_sub(&loads[at], 1);
            continue;
        }
        uint64_t near = ctr_get(&steer.local) + ctr_get(&steer.near);
        unsigned worker = pick((int)rng_below(&rng, 1 + (uint64_t)_i % CPUS));
        atomic_fetch_add(&loads[worker], 1);
        for (unsigned w = 0; w < count; w++) {
            sum += atomic_load(&loads[w]);
        }
        bool was_near = ctr_get(&steer.local) + ctr_get(&steer.near) > near;
        ck_assert(!was_near ||
                  atomic_load(&loads[worker]) <= 1.25 * sum / count + 2.000001);
    }
    ck_assert_uint_gt(ctr_get(&steer.local) + ctr_get(&steer.near), 0);
}

TEST(few_connections_stay_near)
{
    int cpus[] = {0, 1};
    place(cpus, 2, STEER_CPU);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(pick(0), 0);
        atomic_fetch_add(&loads[0], 1);
    }
    ck_assert_uint_eq(pick(0), 1);
    ck_assert_uint_eq(ctr_get(&steer.overflow), 1);
    ck_assert_uint_eq(pick(1), 1);
    int alone[] = {0};
    place(alone, 1, STEER_CPU);
    atomic_store(&loads[0], 100000);
    ck_assert_uint_eq(pick(0), 0);
    ck_assert_uint_eq(ctr_get(&steer.overflow), 0);
}

/* Where a connection would be better off; who is there already, or as near, stays. */
TEST(home_is_nearer_and_has_room)
{
    int cpus[] = {0, 1, 5, 8};
    place(cpus, 4, STEER_CPU);
    ck_assert_int_eq(steer_home(&map, 0, 0, loads), -1);
    ck_assert_int_eq(steer_home(&map, 0, 1, loads), 1);
    ck_assert_int_eq(steer_home(&map, 3, 0, loads), 0);
    ck_assert_int_eq(steer_home(&map, 0, 2, loads), -1); /* 1 is as near */
    ck_assert_int_eq(steer_home(&map, 3, 6, loads), 2);
    ck_assert_int_eq(steer_home(&map, 0, 12, loads), 3); /* at least the node */
    ck_assert_int_eq(steer_home(&map, 3, 15, loads), -1);
    ck_assert_int_eq(steer_home(&map, 0, -1, loads), -1);
    ck_assert_int_eq(steer_home(&map, 0, 4000, loads), -1);
    atomic_store(&loads[1], 50);
    ck_assert_int_eq(steer_home(&map, 0, 1, loads), -1); /* full, and 0 is the next */
    ck_assert_int_eq(steer_home(&map, 3, 1, loads), 0);
    int unpinned[] = {-1, 1};
    place(unpinned, 2, STEER_CPU);
    ck_assert_int_eq(steer_home(&map, 0, 1, loads), -1);
}

TEST(two_choices_even_out)
{
    int cpus[] = {-1, -1, -1, -1, -1, -1, -1, -1};
    place(cpus, 8, STEER_P2C);
    for (unsigned i = 0; i < 8000; i++) {
        atomic_fetch_add(&loads[pick(-1)], 1);
    }
    for (unsigned i = 0; i < 8; i++) {
        expect_between(atomic_load(&loads[i]), 990, 1010);
    }
    int alone[] = {-1};
    place(alone, 1, STEER_P2C);
    ck_assert_uint_eq(pick(-1), 0);
}

TEST(a_queue_is_learned)
{
    int cpus[] = {0, 1};
    place(cpus, 2, STEER_NAPI);
    ck_assert_uint_eq(pick_queue(17, 1), 1);
    ck_assert_uint_eq(pick_queue(18, 0), 0);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(pick_queue(17, 1), 1);
    }
    ck_assert_uint_eq(pick_queue(17, 0), 1); /* one stray */
    ck_assert_uint_eq(pick_queue(17, -1), 1);
    ck_assert_uint_eq(pick_queue(18, 0), 0);
    /* The interrupt moves: the majority follows, within twice as many as it had. */
    unsigned until = 0;
    while (pick_queue(17, 0) != 0) {
        ck_assert_uint_lt(++until, 20);
    }
    ck_assert_uint_eq(ctr_get(&steer.fallback), 0);
    /* No queue: of two the emptier. */
    atomic_store(&loads[1], 9);
    ck_assert_uint_eq(pick_queue(0, 1), 0);
    ck_assert_uint_eq(ctr_get(&steer.fallback), 1);
}

/* More queues than there is room for: the oldest are forgotten, never the one in use. */
TEST(queues_beyond_the_table)
{
    int cpus[] = {0, 1};
    place(cpus, 2, STEER_NAPI);
    for (unsigned id = 1; id < 5000; id++) {
        ck_assert_uint_eq(pick_queue(id, (int)(id % 2)), id % 2);
        ck_assert_uint_eq(pick_queue(id, -1), id % 2);
    }
    ck_assert_uint_eq(ctr_get(&steer.unexpected), 4999 - STEER_QUEUES_MAX);
    /* As many as were said. */
    steer_init(&steer, STEER_NAPI, &map, 2, 1);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(pick_queue(7, 1), 1);
        ck_assert_uint_eq(pick_queue(8, 0), 0);
    }
    ck_assert_uint_eq(ctr_get(&steer.unexpected), 0);
    ck_assert_uint_eq(pick_queue(9, 1), 1); /* instead of 7 */
    ck_assert_uint_eq(pick_queue(8, -1), 0);
    ck_assert_uint_eq(ctr_get(&steer.unexpected), 1);
    ck_assert_uint_eq(steer.queue_count, 2);
}

/* Workers that have no CPU get whole queues, in turn. */
TEST(queues_of_unpinned_workers)
{
    int cpus[] = {-1, -1, -1};
    place(cpus, 3, STEER_NAPI);
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned id = 0; id < 6; id++) {
            unsigned worker = pick_queue(100 + id, (int)(round % 4));
            ck_assert_uint_eq(worker, id % 3);
            atomic_fetch_add(&loads[worker], 1);
        }
    }
    ck_assert_uint_eq(ctr_get(&steer.fallback) + ctr_get(&steer.overflow), 0);
    for (unsigned i = 0; i < 1000; i++) {
        atomic_fetch_add(&loads[pick_queue(100, 0)], 1);
    }
    ck_assert_uint_le(atomic_load(&loads[0]), 1300 / 3 * 5 / 4 + 3);
}

TEST(the_kernels_choice_stays)
{
    int cpus[] = {0, 1, 8};
    struct steer_hint hint = {.cpu = 1, .given = 2};
    place(cpus, 3, STEER_REUSEPORT);
    ck_assert_uint_eq(steer_pick(&steer, &hint, loads), 2);
    ck_assert_uint_eq(ctr_get(&steer.fallback), 1);
    hint.given = 1;
    ck_assert_uint_eq(steer_pick(&steer, &hint, loads), 1);
    ck_assert_uint_eq(ctr_get(&steer.local), 1);
    hint.given = 0;
    ck_assert_uint_eq(steer_pick(&steer, &hint, loads), 0);
    ck_assert_uint_eq(ctr_get(&steer.near), 1);
    atomic_store(&loads[1], 60);
    hint.given = 1;
    ck_assert_uint_ne(steer_pick(&steer, &hint, loads), 1);
    ck_assert_uint_eq(ctr_get(&steer.overflow), 1);
}

/* The same seed, the same choices. */
/* Shunned workers get nothing in any mode, the others share fairly, and it ends. */
TEST_LOOP(shunned_workers_are_passed_over, 5)
{
    static const int cpus[] = {0, 1, 4, 8, 12};
    static const enum steer_mode modes[] = {STEER_RR, STEER_P2C, STEER_CPU, STEER_NAPI,
                                            STEER_REUSEPORT};
    place(cpus, 5, modes[_i]);
    steer_map_exclude(&map, 0, true);
    steer_map_exclude(&map, 3, true);
    atomic_store(&loads[3], 500); /* what it still has counts for nobody's share */
    for (unsigned i = 0; i < 300; i++) {
        struct steer_hint hint = {.cpu = i % 3 == 0 ? 0 : (int)(i % 16),
                                  .napi = i % 7,
                                  .given =
                                      modes[_i] == STEER_REUSEPORT ? (int)(i % 5) : -1};
        atomic_fetch_add(&loads[steer_pick(&steer, &hint, loads)], 1);
    }
    ck_assert_uint_eq(atomic_load(&loads[0]), 0);
    ck_assert_uint_eq(atomic_load(&loads[3]), 500);
    expect_between(atomic_load(&loads[1]), 20, 130);
    ck_assert_int_lt(steer_home(&map, 4, 8, loads), 0);
    ck_assert_int_ne(steer_home(&map, 1, 0, loads), 0);
    steer_map_exclude(&map, 0, false);
    for (unsigned i = 0; i < 50; i++) {
        struct steer_hint hint = {
            .cpu = 0, .napi = 9, .given = modes[_i] == STEER_REUSEPORT ? 0 : -1};
        atomic_fetch_add(&loads[steer_pick(&steer, &hint, loads)], 1);
    }
    ck_assert_uint_ge(atomic_load(&loads[0]), 10);
}

TEST(chance_is_seeded)
{
    int cpus[] = {-1, -1, -1, -1, -1};
    unsigned first[50];
    place(cpus, 5, STEER_P2C);
    for (unsigned i = 0; i < 50; i++) {
        first[i] = pick(-1);
    }
    place(cpus, 5, STEER_P2C);
    for (unsigned i = 0; i < 50; i++) {
        ck_assert_uint_eq(pick(-1), first[i]);
    }
}
