/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * When the crawler comes again.
 */
#include "check_main.h"
#include "check_store.h"
#include "store/crawlplan.h"

#define CLASS 7u
#define LIST STORE_LIST_WARM

static struct crawlplan plan;

static void
start(void)
{
    memset(&plan, 0, sizeof(plan));
    ck_assert(!crawlplan_is_due(&plan, CLASS, LIST, NOW));
    crawlplan_begin(&plan);
}

static void
note(unsigned items, uint32_t left, uint32_t now)
{
    while (items-- > 0) {
        crawlplan_note(&plan, left == 0 ? STORE_NEVER : now + left, now);
    }
}

static struct store_crawl
end(uint32_t now)
{
    struct store_crawl crawl = {.examined = 0};

    crawlplan_end(&plan, CLASS, LIST, now, &crawl);
    crawlplan_begin(&plan);
    return crawl;
}

/* How long after `now` the list is due. */
static uint32_t
wait_from(uint32_t now)
{
    uint32_t wait = 1;

    while (!crawlplan_is_due(&plan, CLASS, LIST, now + wait)) {
        ck_assert_uint_le(++wait, CRAWLPLAN_WAIT_MAX);
    }
    return wait;
}

TEST(first_visit_is_soon)
{
    start();
    ck_assert_uint_eq(wait_from(NOW), CRAWLPLAN_WAIT_MIN);
}

TEST(comes_later_where_nothing_expires)
{
    uint32_t now = NOW;
    uint32_t wait = CRAWLPLAN_WAIT_MIN;

    start();
    for (unsigned i = 0; i < 70; i++) {
        note(1000, 0, now);
        ck_assert_uint_eq(end(now).low_mark, 1);
        wait = wait + 60 < CRAWLPLAN_WAIT_MAX ? wait + 60 : CRAWLPLAN_WAIT_MAX;
        ck_assert_uint_eq(wait_from(now), wait);
        now += wait;
    }
    ck_assert_uint_eq(wait, CRAWLPLAN_WAIT_MAX);
}

TEST(comes_sooner_where_much_expires)
{
    uint32_t now = NOW;

    start();
    for (unsigned i = 0; i < 5; i++) {
        end(now);
    }
    ck_assert_uint_eq(wait_from(now), 305);
    note(98, 3600, now);
    note(1, 299, now); /* one in 99 */
    struct store_crawl crawl = end(now);
    ck_assert_uint_eq(crawl.low_mark, 1);
    ck_assert_uint_eq(crawl.next_reclaims, 1);
    ck_assert_uint_eq(crawl.next_run, 245);
    ck_assert_uint_eq(wait_from(now), 245);
    note(99, 3600, now);
    note(1, 100, now); /* one in a hundred is not worth while */
    ck_assert_uint_eq(end(now).low_mark, 2);
    ck_assert_uint_eq(wait_from(now), 305);
    for (unsigned i = 0; i < 9; i++) {
        note(5, 10, now);
        end(now);
    }
    ck_assert_uint_eq(wait_from(now), CRAWLPLAN_WAIT_MIN);
}

TEST(tells_how_long_ago_the_last_visit_was)
{
    start();
    ck_assert_uint_eq(end(NOW).since_run, 0);
    ck_assert_uint_eq(end(NOW + 65).since_run, 65);
}

TEST(lists_are_apart)
{
    start();
    crawlplan_is_due(&plan, CLASS, STORE_LIST_COLD, NOW);
    crawlplan_is_due(&plan, CLASS + 1, LIST, NOW);
    end(NOW);
    ck_assert(!crawlplan_is_due(&plan, CLASS, LIST, NOW + CRAWLPLAN_WAIT_MIN));
    ck_assert(crawlplan_is_due(&plan, CLASS, STORE_LIST_COLD, NOW + CRAWLPLAN_WAIT_MIN));
    ck_assert(crawlplan_is_due(&plan, CLASS + 1, LIST, NOW + CRAWLPLAN_WAIT_MIN));
}
