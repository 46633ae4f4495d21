/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How often the thread in the background looks after the lists of a class: wake-ups are counted
 * on a clock of the test's own.
 */
#include "control/maintenance.h"

#include <sched.h>
#include <semaphore.h>

#include "check_main.h"
#include "check_store.h"

#define MS NSEC_PER_MSEC
#define MOST 500 /* moves of a visit */

/* Visits in the last of `seconds` seconds, while there is work for so many moves a second. */
static unsigned
count_visits(unsigned seconds, uint64_t moves_a_second, uint64_t items, bool is_reordered)
{
    nsec_t sleep = MS, now = 0, end = seconds * NSEC_PER_SEC;
    uint64_t done = 0;
    unsigned visits = 0;
    while (now < end) {
        uint64_t due = now * moves_a_second / NSEC_PER_SEC;
        unsigned moved = (unsigned)(due - done < MOST ? due - done : MOST);
        done += moved;
        struct store_juggled visit = {.settled = is_reordered ? 0 : moved,
                                      .reordered = is_reordered ? moved : 0};
        sleep = maintenance_juggle_sleep(sleep, visit, items);
        expect_between(sleep, MS, NSEC_PER_SEC);
        now += sleep;
        visits += now > end - NSEC_PER_SEC;
    }
    ck_assert(is_reordered ||
              end * moves_a_second / NSEC_PER_SEC - done <= moves_a_second + MOST);
    return visits;
}

TEST(nobody_wakes_without_work)
{
    ck_assert_uint_le(count_visits(10, 0, 1000000, false), 2);
    nsec_t sleep = MS;
    for (unsigned i = 0; i < 10; i++) {
        sleep = maintenance_juggle_sleep(sleep, (struct store_juggled){0}, 1000000);
    }
    ck_assert_uint_eq(sleep, NSEC_PER_SEC); /* after one second, not ten */
}

/* A few moves are no reason to come back in a millisecond. */
TEST(a_visit_is_worth_its_wake_up)
{
    ck_assert_uint_le(count_visits(60, 50, 1000000, false), 4);
    ck_assert_uint_le(count_visits(60, 1000, 1000000, false), 40);
    ck_assert_uint_le(count_visits(60, 10000, 1000000, false), 300);
}

/* What there is to do is done, at up to half a million moves a second. */
TEST(much_work_is_done_soon)
{
    ck_assert_uint_ge(count_visits(10, 400000, 1000000, false), 800);
    ck_assert_uint_eq(maintenance_juggle_sleep(
                          NSEC_PER_SEC, (struct store_juggled){.settled = MOST}, 12),
                      MS);
    /* A page of large items is a class, too: one of twelve is much. */
    ck_assert_uint_ge(count_visits(60, 100, 12, false), 30);
}

/* While everything is read all the time each visit finds all it may move. */
TEST(reads_without_end_do_not_keep_it_awake)
{
    unsigned visits = count_visits(10, 1000000, 20000, true);
    ck_assert(visits > 200 && visits <= 251);
}

/* ---- the thread ----------------------------------------------------------------------- */

static sem_t yields;

int
sched_yield(void)
{
    return sem_post(&yields);
}

static void
nothing(void *ctx)
{
    (void)ctx;
}

/* Pieces of what is long are followed by a chance for others on this CPU. */
TEST(a_crawl_gives_way)
{
    struct store_conf conf = default_conf(64 * MIB);
    struct store *s = open_store(&conf);
    for (size_t i = 0; i < 10000; i++) {
        expect_ok(put(s, STORE_SET, numbered("item", i), "value", 0, NOW));
    }
    struct maint maint;
    struct maint_conf maint_conf = {.has_crawler = true};
    maint_init(&maint, &maint_conf, NULL);
    ck_assert_int_eq(maint_crawl(&maint, s, STORE_WALK_ALL, NOW), STORE_WALK_OK);
    ck_assert_int_eq(sem_init(&yields, 0, 0), 0);
    struct maintenance m;
    struct maintenance_conf m_conf = {.store = s, .maint = &maint, .second = nothing};
    ck_assert(maintenance_start(&m, &m_conf));
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(sem_wait(&yields), 0);
    }
    maintenance_stop(&m);
    maint_fini(&maint);
    store_destroy(&s);
}
