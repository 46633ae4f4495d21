/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long input has waited: what the kernel's stamp and the own clock make of it.
 */
#include "base/sojourn.h"

#include "check_main.h"

#define WALL (UINT64_C(1800000000) * NSEC_PER_SEC)
#define US NSEC_PER_USEC

static const struct {
    const char *what;
    nsec_t rx_ago; /* before the read; 0: no stamp */
    nsec_t ready_ago;
    struct sojourn want;
} cases[] = {
    {"no stamp", 0, 30 * US, {false, 0, 30 * US, 30 * US}},
    {"in the kernel and in the loop",
     100 * US,
     30 * US,
     {true, 70 * US, 30 * US, 100 * US}},
    {"read at once", 100 * US, 0, {true, 100 * US, 0, 100 * US}},
    {"came when it was known already", 10 * US, 30 * US, {true, 0, 30 * US, 30 * US}},
    {"as old as can be", NSEC_PER_SEC, 0, {true, NSEC_PER_SEC, 0, NSEC_PER_SEC}},
    {"the clock was set", NSEC_PER_SEC + 1, 5 * US, {false, 0, 5 * US, 5 * US}},
};

TEST_LOOP(stages_are_told_apart, ROWS(cases))
{
    struct sojourn_times t = {.rx_wall =
                                  cases[_i].rx_ago != 0 ? WALL - cases[_i].rx_ago : 0,
                              .read_wall = WALL,
                              .read_mono = NSEC_PER_SEC,
                              .ready_mono = NSEC_PER_SEC - cases[_i].ready_ago};
    struct sojourn s = sojourn_of(&t);
    ck_assert_int_eq(s.has_kernel, cases[_i].want.has_kernel);
    ck_assert_uint_eq(s.kernel, cases[_i].want.kernel);
    ck_assert_uint_eq(s.loop, cases[_i].want.loop);
    ck_assert_uint_eq(s.total, cases[_i].want.total);
}

TEST(clocks_that_run_backwards_are_not_believed)
{
    struct sojourn_times t = {
        .rx_wall = WALL + 1, .read_wall = WALL, .read_mono = 5, .ready_mono = 6};
    struct sojourn s = sojourn_of(&t);
    ck_assert(!s.has_kernel);
    ck_assert_uint_eq(s.kernel + s.loop + s.total, 0);
}
