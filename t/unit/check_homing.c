/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When a connection goes to the worker that is nearer: not for a stray packet, not when it is
 * idle, not to a worker that has more to do.
 */
#include "qos/homing.h"

#include "check_main.h"

#define STEP (100 * NSEC_PER_MSEC)

static struct homing h;
static uint32_t served;
static nsec_t now;

static void
start(void)
{
    h = (struct homing){.home = 0};
    served = 0;
    now = 5 * NSEC_PER_SEC;
}

static bool
look(int home, bool is_used)
{
    served += is_used;
    now += STEP;
    return homing_note(&h, home, served, now);
}

TEST(a_lasting_mismatch_moves)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(!look(3, true));
    }
    ck_assert(look(3, true));
    ck_assert(look(3, true)); /* it could not be moved just then */
    ck_assert(!look(-1, true));
    ck_assert(!look(3, true));
}

TEST(worker_0_is_a_home)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(!look(0, true));
    }
    ck_assert(look(0, true));
}

/* One look in eight says something else: never long enough. */
TEST(strays_begin_it_anew)
{
    start();
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(!look(i % 8 == 7 ? (int)(i % 16 == 7 ? 1 : -1) : 2, true));
    }
}

TEST(idle_connections_stay)
{
    start();
    for (unsigned i = 0; i < 100; i++) {
        ck_assert(!look(2, false));
    }
    ck_assert(!look(2, true));
    for (unsigned i = 0; i < 100; i++) {
        ck_assert(!look(2, false));
    }
    ck_assert(look(2, true)); /* seldom used, but always from there */
    ck_assert(!look(2, false));
}

TEST(a_count_that_wraps_is_use)
{
    start();
    served = UINT32_MAX - 4;
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(!look(1, true));
    }
    ck_assert(look(1, true));
}

TEST(a_clock_that_jumps_back_is_harmless)
{
    start();
    ck_assert(!look(1, true));
    now = 0;
    ck_assert(!look(1, true));
}

/* What balancing has moved is not undone: the band in which it is quiet is wider. */
TEST(load_comes_first)
{
    ck_assert(homing_suits(500, 500));
    ck_assert(homing_suits(900, 100));
    ck_assert(homing_suits(0, HOMING_LOAD_MILLI));
    ck_assert(!homing_suits(0, HOMING_LOAD_MILLI + 1));
    ck_assert(!homing_suits(500, 700));
}

TEST(few_at_once)
{
    ck_assert_uint_eq(homing_most(0), 1);
    ck_assert_uint_eq(homing_most(19), 1);
    ck_assert_uint_eq(homing_most(100), 5);
    ck_assert_uint_eq(homing_most(UINT32_MAX), UINT32_MAX / 20);
}
