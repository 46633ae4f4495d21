/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When a connection goes to the worker that is nearer: not for a stray packet, not when it is
 * idle, not to a worker that has more to do.
 */
#include "qos/homing.h"

#include "check_unit.h"

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

START_TEST(a_lasting_mismatch_moves)
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
END_TEST

START_TEST(worker_0_is_a_home)
{
    start();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(!look(0, true));
    }
    ck_assert(look(0, true));
}
END_TEST

/* One look in eight says something else: never long enough. */
START_TEST(strays_begin_it_anew)
{
    start();
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert(!look(i % 8 == 7 ? (int)(i % 16 == 7 ? 1 : -1) : 2, true));
    }
}
END_TEST

START_TEST(idle_connections_stay)
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
END_TEST

START_TEST(a_count_that_wraps_is_use)
{
    start();
    served = UINT32_MAX - 4;
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(!look(1, true));
    }
    ck_assert(look(1, true));
}
END_TEST

START_TEST(a_clock_that_jumps_back_is_harmless)
{
    start();
    ck_assert(!look(1, true));
    now = 0;
    ck_assert(!look(1, true));
}
END_TEST

/* What balancing has moved is not undone: the band in which it is quiet is wider. */
START_TEST(load_comes_first)
{
    ck_assert(homing_suits(500, 500));
    ck_assert(homing_suits(900, 100));
    ck_assert(homing_suits(0, HOMING_LOAD_MILLI));
    ck_assert(!homing_suits(0, HOMING_LOAD_MILLI + 1));
    ck_assert(!homing_suits(500, 700));
}
END_TEST

START_TEST(few_at_once)
{
    ck_assert_uint_eq(homing_most(0), 1);
    ck_assert_uint_eq(homing_most(19), 1);
    ck_assert_uint_eq(homing_most(100), 5);
    ck_assert_uint_eq(homing_most(UINT32_MAX), UINT32_MAX / 20);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("homing");
    TCase *tc = tcase_create("homing");
    tcase_set_timeout(tc, SUITE_TIMEOUT_S);
    tcase_add_test(tc, a_lasting_mismatch_moves);
    tcase_add_test(tc, worker_0_is_a_home);
    tcase_add_test(tc, strays_begin_it_anew);
    tcase_add_test(tc, idle_connections_stay);
    tcase_add_test(tc, a_count_that_wraps_is_use);
    tcase_add_test(tc, a_clock_that_jumps_back_is_harmless);
    tcase_add_test(tc, load_comes_first);
    tcase_add_test(tc, few_at_once);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
