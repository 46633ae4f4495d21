/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How large the queue of new items is to be, by figures that are made up.
 */
#include "store/hotshare.h"

#include "check_main.h"

#define ITEMS 100000u
#define LOOKS 40

static struct hotshare h;

static void
set_up(void)
{
    hotshare_init(&h, NULL);
}

static void
tear_down(void)
{
    hotshare_fini(&h);
}

/* Of 2000 ghosts so many came back; so many left the main queue, and so many of them returned. */
static unsigned
add(unsigned looks, uint64_t came_back, uint64_t losses, uint64_t returns)
{
    const struct hotshare_counts more = {
        .ghosts = 2000, .came_back = came_back, .losses = losses, .returns = returns};

    for (unsigned i = 0; i < looks; i++) {
        hotshare_add(&h, &more, ITEMS);
    }
    return hotshare_pct(&h);
}

FIXTURE(set_up, tear_down);

TEST(is_a_twentieth_at_first)
{
    ck_assert_uint_eq(hotshare_pct(&h), 5);
}

TEST(stays_while_losses_return)
{
    ck_assert_uint_eq(add(LOOKS, 400, 1000, 100), 5);
    ck_assert_uint_eq(add(LOOKS, 400, 1000, 51), 5);
}

TEST(grows_when_only_ghosts_come_back_and_shrinks_again)
{
    ck_assert_uint_eq(add(LOOKS, 400, 1000, 100), 5);
    ck_assert_uint_gt(add(10, 400, 1000, 10), 20);
    ck_assert_uint_eq(add(LOOKS, 400, 1000, 10), 50);
    ck_assert_uint_eq(add(LOOKS, 400, 1000, 100), 5);
}

TEST(lies_between_for_middling_figures)
{
    unsigned pct = add(LOOKS, 1200, 1000, 100);

    ck_assert_uint_gt(pct, 20);
    ck_assert_uint_lt(pct, 35);
}

/* As long as the main queue has hardly lost anything, none of that could return. */
TEST(knows_nothing_before_a_quarter_has_left)
{
    ck_assert_uint_eq(add(24, 400, 1000, 0), 5);
    ck_assert_uint_eq(add(1, 400, 1000, 0), 50);
}

TEST(waits_for_enough_ghosts)
{
    const struct hotshare_counts few = {.ghosts = 32, .came_back = 30, .losses = 32};

    for (unsigned i = 0; i < 15; i++) {
        hotshare_add(&h, &few, 100);
    }
    ck_assert_uint_eq(hotshare_pct(&h), 5);
    hotshare_add(&h, &few, 100);
    ck_assert_uint_eq(hotshare_pct(&h), 50);
}
