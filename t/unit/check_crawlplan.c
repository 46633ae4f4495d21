/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the crawler comes again.
 */
#include "check_store.h"
#include "store/crawlplan.h"

#define CLASS 7u
#define BIT (UINT64_C(1) << CLASS)

static struct crawlplan plan;

static void
start(void)
{
    memset(&plan, 0, sizeof(plan));
    ck_assert_uint_eq(crawlplan_due(&plan, NOW), 0);
}

static void
note(unsigned items, uint32_t left, uint32_t now)
{
    while (items-- > 0) {
        crawlplan_note(&plan, CLASS, left == 0 ? STORE_NEVER : now + left, now);
    }
}

/* How long after `now` the class is due. */
static uint32_t
wait_from(uint32_t now)
{
    uint32_t wait = 1;

    while ((crawlplan_due(&plan, now + wait) & BIT) == 0) {
        ck_assert_uint_le(++wait, CRAWLPLAN_WAIT_MAX);
    }
    return wait;
}

START_TEST(first_visit_is_soon)
{
    start();
    ck_assert_uint_eq(wait_from(NOW), CRAWLPLAN_WAIT_MIN);
    ck_assert_uint_eq(crawlplan_due(&plan, NOW + CRAWLPLAN_WAIT_MIN),
                      UINT64_MAX - 1); /* all but the pool */
}
END_TEST

START_TEST(comes_later_where_nothing_expires)
{
    uint32_t now = NOW;
    uint32_t wait = CRAWLPLAN_WAIT_MIN;

    start();
    for (unsigned i = 0; i < 70; i++) {
        note(1000, 0, now);
        crawlplan_end(&plan, BIT, now);
        wait = wait + 60 < CRAWLPLAN_WAIT_MAX ? wait + 60 : CRAWLPLAN_WAIT_MAX;
        ck_assert_uint_eq(wait_from(now), wait);
        now += wait;
    }
    ck_assert_uint_eq(wait, CRAWLPLAN_WAIT_MAX);
}
END_TEST

START_TEST(comes_sooner_where_much_expires)
{
    uint32_t now = NOW;

    start();
    for (unsigned i = 0; i < 5; i++) {
        crawlplan_end(&plan, BIT, now);
    }
    ck_assert_uint_eq(wait_from(now), 305);
    note(98, 3600, now);
    note(1, 299, now); /* one in 99 */
    crawlplan_end(&plan, BIT, now);
    ck_assert_uint_eq(wait_from(now), 245);
    note(99, 3600, now);
    note(1, 100, now); /* one in a hundred is not worth while */
    crawlplan_end(&plan, BIT, now);
    ck_assert_uint_eq(wait_from(now), 305);
    for (unsigned i = 0; i < 9; i++) {
        note(5, 10, now);
        crawlplan_end(&plan, BIT, now);
    }
    ck_assert_uint_eq(wait_from(now), CRAWLPLAN_WAIT_MIN);
}
END_TEST

START_TEST(classes_are_apart)
{
    start();
    crawlplan_end(&plan, BIT, NOW);
    ck_assert_uint_eq(crawlplan_due(&plan, NOW + CRAWLPLAN_WAIT_MIN),
                      (UINT64_MAX - 1) & ~BIT);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("crawlplan");
    TCase *tc = tcase_create("crawlplan");

    tcase_add_test(tc, first_visit_is_soon);
    tcase_add_test(tc, comes_later_where_nothing_expires);
    tcase_add_test(tc, comes_sooner_where_much_expires);
    tcase_add_test(tc, classes_are_apart);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
