/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Walks over lists and over the hash table, with changes between their steps.
 */
#include "fixture_store.h"

#define ITEMS 60u
#define MANY 3000u
#define expect_more(step) ck_assert_int_eq(step, STORE_WALK_MORE)

/* How often each numbered key has been seen. */
static struct seen {
    unsigned times[MANY];
    unsigned total;
    unsigned room; /* visits that are accepted before one is refused; 0: all */
} seen;

static void
set_up(void)
{
    seen = (struct seen){.total = 0};
    conf = default_conf(8 * MIB);
    s = open_store(&conf);
}

static bool
note(void *ctx, const struct item *it)
{
    (void)ctx;
    char text[8] = "";

    if (seen.room > 0 && --seen.room == 0) {
        return false;
    }
    memcpy(text, item_key(it) + 1, item_key_len(it) - 1u);
    seen.times[atoi(text)]++;
    seen.total++;
    return true;
}

/* Only the numbered ones. */
static bool
note_old(void *ctx, const struct item *it)
{
    return item_key(it)[0] != 'k' || note(ctx, it);
}

static void
put_numbered(unsigned from, unsigned to, uint32_t exptime)
{
    put_range("k", from, to, 2, exptime, NOW);
}

static uint32_t
open_walk(uint64_t classes, bool by_table, uint32_t per_list)
{
    struct store_walk_spec ask = {
        .classes = classes, .by_table = by_table, .per_list = per_list};
    uint32_t ticket;

    ck_assert_int_eq(store_walk_open(s, &ask, NOW, &ticket), STORE_WALK_OK);
    return ticket;
}

static void
walk_through(uint32_t ticket, unsigned items, uint32_t now)
{
    enum store_walk_step step;

    while ((step = store_walk_step(s, ticket, items, now, note, NULL)) ==
           STORE_WALK_MORE) {
    }
    ck_assert_int_eq(step, STORE_WALK_OVER);
    store_walk_close(s, ticket);
}

/* The first so many. */
static void
check_seen_once(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_uint_eq(seen.times[i], 1);
    }
}

FIXTURE(set_up, tear_down_store);

TEST(removes_what_has_expired)
{
    put_numbered(0, 30, NOW + 1);
    put_numbered(30, 90, STORE_NEVER);
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 90);
    uint32_t ticket = open_walk(UINT64_C(1) << 1, false, 0);
    ck_assert(totals_of(s).is_walking);
    walk_through(ticket, 7, NOW + 5);
    ck_assert(!totals_of(s).is_walking);
    struct store_class_stats c = class_of(s, 1, NOW);
    ck_assert_uint_eq(seen.total, ITEMS);
    ck_assert_uint_eq(c.used_chunks, ITEMS);
    ck_assert_uint_eq(c.count.crawler_reclaimed, 30);
    ck_assert_uint_eq(c.count.crawler_items_checked, 90);
    ck_assert_uint_eq(c.count.expired_unfetched, 30);
    ck_assert_uint_eq(totals_of(s).crawler_starts, 1);
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 0); /* no store took their places */
}

TEST(counts_when_a_list_is_done)
{
    put_numbered(0, 30, NOW + 1);
    uint32_t ticket = open_walk(STORE_WALK_ALL, false, 0);
    expect_more(store_walk_step(s, ticket, 29, NOW + 5, NULL, NULL));
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 1);
    ck_assert_uint_eq(class_of(s, 1, NOW).count.crawler_reclaimed, 0);
    store_walk_close(s, ticket); /* before its end */
    ck_assert_uint_eq(class_of(s, 1, NOW).count.crawler_reclaimed, 29);
    ck_assert_int_eq(store_walk_step(s, ticket, 1, NOW, NULL, NULL), STORE_WALK_LOST);
    store_walk_close(s, ticket);
}

TEST(says_why_it_can_not_walk)
{
    struct store_walk_spec all = {.classes = STORE_WALK_ALL};
    struct store_walk_spec some = {.classes = UINT64_C(1) << 5};
    uint32_t first, second;

    ck_assert_int_eq(store_walk_open(s, &all, NOW, &first), STORE_WALK_EMPTY);
    put_numbered(0, 1, STORE_NEVER);
    ck_assert_int_eq(store_walk_open(s, &some, NOW, &first), STORE_WALK_EMPTY);
    first = open_walk(STORE_WALK_ALL, false, 0);
    ck_assert_int_eq(store_walk_open(s, &all, NOW, &second), STORE_WALK_BUSY);
    store_walk_expire(s, NOW + 60);
    ck_assert_int_eq(store_walk_open(s, &all, NOW, &second), STORE_WALK_BUSY);
    store_walk_expire(s, NOW + 61);
    second = open_walk(STORE_WALK_ALL, false, 0);
    ck_assert_int_eq(store_walk_step(s, first, 1, NOW, NULL, NULL), STORE_WALK_LOST);
    store_walk_close(s, first);
    ck_assert_int_eq(store_walk_step(s, second, 9, NOW, NULL, NULL), STORE_WALK_OVER);
    store_walk_close(s, second);
}

TEST(stops_a_list_after_so_many)
{
    put_numbered(0, ITEMS, STORE_NEVER);
    walk_through(open_walk(STORE_WALK_ALL, false, 7), 100, NOW);
    ck_assert_uint_eq(seen.total, 7);
    check_seen_once(7); /* the oldest */
}

/* The item at the position and those around it go, come and move. */
TEST(ends_though_items_are_added)
{
    unsigned n = ITEMS;

    put_numbered(0, ITEMS, STORE_NEVER);
    uint32_t ticket = open_walk(STORE_WALK_ALL, false, 0);
    while (store_walk_step(s, ticket, 1, NOW, note, NULL) == STORE_WALK_MORE) {
        put_numbered(n, n + 2, STORE_NEVER);
        n += 2;
        ck_assert_uint_lt(n, MANY);
    }
    check_seen_once(ITEMS);
    ck_assert_uint_eq(seen.total, ITEMS);
    store_walk_close(s, ticket);
}

TEST(keeps_its_place_in_a_list)
{
    conf.can_reassign = true;
    reopen();
    put_numbered(0, ITEMS, STORE_NEVER);
    uint32_t ticket = open_walk(STORE_WALK_ALL, false, 0);
    for (unsigned i = 0; i < 50; i += 5) {
        expect_more(store_walk_step(s, ticket, 3, NOW, note, NULL));
        ck_assert_uint_eq(seen.times[i + 2], 1);
        drop(numbered("k", i + 3), NOW);         /* is next */
        put_numbered(i + 4, i + 5, STORE_NEVER); /* then this: to the head */
    }
    walk_through(ticket, 1, NOW);
    for (unsigned i = 0; i < ITEMS; i++) {
        ck_assert_uint_eq(seen.times[i], i < 50 && i % 5 == 3 ? 0 : 1);
    }
}

TEST_LOOP(begins_with_the_item_that_had_no_room, 2)
{
    put_numbered(0, MANY, STORE_NEVER);
    uint32_t ticket = open_walk(STORE_WALK_ALL, _i, 0);
    for (unsigned room = 1; room < 60; room++) {
        seen.room = room + 1;
        while (seen.room > 0) {
            expect_more(store_walk_step(s, ticket, 1000, NOW, note, NULL));
        }
    }
    walk_through(ticket, 1000, NOW);
    check_seen_once(MANY);
}

TEST(sees_each_item_of_the_table_once)
{
    enum store_walk_step step;

    conf.can_grow_hash = false; /* long chains */
    reopen();
    put_numbered(0, MANY, STORE_NEVER);
    uint32_t ticket = open_walk(0, true, 0);
    for (unsigned i = 0;; i = (i + 7) % MANY) {
        step = store_walk_step(s, ticket, 3, NOW, note, NULL);
        if (step != STORE_WALK_MORE) {
            break;
        }
        put_numbered(i, i + 1, STORE_NEVER); /* a new item under the same key */
    }
    ck_assert_int_eq(step, STORE_WALK_OVER);
    store_walk_close(s, ticket);
    check_seen_once(MANY);
}

/* Twice to the double while a walk is under way: each item still comes once. */
TEST(table_grows_under_a_walk)
{
    struct store_walk_spec ask = {.by_table = true};
    unsigned power = totals_of(s).hash_power;
    unsigned added = 0;
    bool was_expanding = false;

    put_numbered(0, MANY, STORE_NEVER);
    uint32_t ticket = open_walk(0, true, 0);
    while (store_walk_step(s, ticket, 3, NOW, note_old, NULL) == STORE_WALK_MORE) {
        for (unsigned i = 0; i < 12 && added < 20000; i++, added++) {
            expect_ok(put_sized(s, numbered("grow", added), 2, STORE_NEVER, NOW));
        }
        store_step(s, 7);
        was_expanding |= totals_of(s).is_expanding;
    }
    store_walk_close(s, ticket);
    ck_assert(was_expanding);
    ck_assert_uint_ge(totals_of(s).hash_power, power + 2);
    check_seen_once(MANY);
    put_numbered(0, MANY, STORE_NEVER);
    for (; !totals_of(s).is_expanding; added++) {
        expect_ok(put_sized(s, numbered("grow", added), 2, STORE_NEVER, NOW));
        store_step(s, 1);
    }
    ck_assert_int_eq(store_walk_open(s, &ask, NOW, &ticket), STORE_WALK_LOCKED);
}

static bool
has_no_room(void *ctx, const struct item *it)
{
    (void)ctx;
    (void)it;
    return false;
}

/* A reader that takes a byte now and then does not keep its walk. */
TEST_LOOP(ends_when_it_does_not_get_on, 2)
{
    put_numbered(0, ITEMS, STORE_NEVER);
    uint32_t ticket = open_walk(STORE_WALK_ALL, _i, 0);
    for (unsigned i = 0; i <= 60; i++) {
        expect_more(store_walk_step(s, ticket, 1000, NOW + i, has_no_room, NULL));
        store_walk_expire(s, NOW + i);
    }
    store_walk_expire(s, NOW + 61);
    ck_assert(!totals_of(s).is_walking);
}

/* One that gets on slowly keeps it for half an hour; a crawl may take as long as it likes. */
TEST_LOOP(ends_a_dump_after_half_an_hour, 2)
{
    struct store_walk_spec ask = {.classes = STORE_WALK_ALL, .is_crawl = _i};
    uint32_t ticket;

    put_numbered(0, ITEMS, STORE_NEVER);
    ck_assert_int_eq(store_walk_open(s, &ask, NOW, &ticket), STORE_WALK_OK);
    for (unsigned i = 1; i <= 36; i++) {
        expect_more(store_walk_step(s, ticket, 1, NOW + 50 * i, NULL, NULL));
        store_walk_expire(s, NOW + 50 * i);
    }
    ck_assert(totals_of(s).is_walking);
    store_walk_expire(s, NOW + 1801);
    ck_assert_int_eq(totals_of(s).is_walking, _i);
}

static struct store_event crawled;
static unsigned crawls;

static void
note_crawl(void *ctx, const struct store_event *event)
{
    (void)ctx;
    if (event->kind == STORE_EVENT_CRAWL) {
        crawled = *event;
        crawls++;
    }
}

static void
crawl_all(uint32_t now)
{
    struct store_walk_spec ask = {.classes = STORE_WALK_ALL, .is_crawl = true};
    uint32_t ticket;

    crawls = 0;
    ck_assert_int_eq(store_walk_open(s, &ask, now, &ticket), STORE_WALK_OK);
    while (store_walk_step(s, ticket, 10, now, NULL, NULL) == STORE_WALK_MORE) {
    }
    store_walk_close(s, ticket);
}

TEST(tells_of_each_list_and_plans_the_next_crawl)
{
    struct store_walk_spec due = {
        .classes = STORE_WALK_ALL, .is_crawl = true, .only_due = true};
    uint32_t ticket;

    conf.on_event = note_crawl;
    reopen();
    put_numbered(0, 30, NOW + 1);    /* gone at the first crawl */
    put_numbered(30, 330, NOW + 90); /* less than two minutes left */
    put_numbered(330, 400, STORE_NEVER);
    walk_through(open_walk(STORE_WALK_ALL, false, 0), 7, NOW);
    ck_assert_uint_eq(crawls, 0); /* a dump is no crawl */
    ck_assert_int_eq(store_walk_open(s, &due, NOW, &ticket), STORE_WALK_EMPTY);
    crawl_all(NOW + 5);
    ck_assert_uint_eq(crawls, 1);
    ck_assert_uint_eq(crawled.class_id, 1);
    ck_assert_int_eq(crawled.list, STORE_LIST_COLD);
    ck_assert_uint_eq(crawled.crawl.examined, 400);
    ck_assert_uint_eq(crawled.crawl.reclaimed, 30);
    ck_assert_uint_eq(crawled.crawl.low_mark, 4);
    ck_assert_uint_eq(crawled.crawl.next_reclaims, 0);
    ck_assert_uint_eq(crawled.crawl.since_run, 0);
    ck_assert_uint_eq(crawled.crawl.next_run, 65);
    ck_assert_int_eq(store_walk_open(s, &due, NOW + 69, &ticket), STORE_WALK_EMPTY);
    crawl_all(NOW + 40);
    ck_assert_uint_eq(crawled.crawl.next_reclaims, 300);
    ck_assert_uint_eq(crawled.crawl.since_run, 35);
    ck_assert_uint_eq(crawled.crawl.next_run, 5);
    ck_assert_int_eq(store_walk_open(s, &due, NOW + 45, &ticket), STORE_WALK_OK);
}

TEST(passes_over_locked_items)
{
    put_numbered(0, 10, STORE_NEVER);
    store_debug_lock(s, key_of("k4"), true);
    walk_through(open_walk(STORE_WALK_ALL, false, 0), 5, NOW);
    store_debug_lock(s, key_of("k4"), false);
    ck_assert_uint_eq(seen.total, 9);
    ck_assert_uint_eq(seen.times[4], 0);
}
