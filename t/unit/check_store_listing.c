/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Listings of items and of their sizes: what they tell, and that a step looks at no more than
 * it was allowed to, whatever there is.
 */
#include <limits.h>

#include "fixture_store.h"

#define ALL_LOOKS 1000000u

/* ---- sizes ---------------------------------------------------------------------------- */

struct reported {
    uint64_t size; /* the one to count */
    uint64_t count, sizes, last;
};

static void
note_size(void *ctx, uint64_t size, uint64_t count)
{
    struct reported *t = ctx;

    ck_assert_uint_gt(size, t->last);
    ck_assert_uint_gt(count, 0);
    t->last = size;
    t->sizes++;
    t->count += size == t->size ? count : 0;
}

/* How many items of the bucket are told of, in steps of so many looks, which are counted. */
static struct reported
tell_sizes(unsigned bucket, unsigned looks, unsigned *steps)
{
    struct reported t = {.size = (bucket + 1) * 32};
    unsigned at = 0;

    *steps = 1;
    while (store_sizes_step(s, &at, looks, note_size, &t)) {
        ++*steps;
    }
    return t;
}

static uint64_t
count_sized(unsigned bucket)
{
    unsigned steps;
    uint64_t count = tell_sizes(bucket, ALL_LOOKS, &steps).count;

    ck_assert_uint_eq(steps, 1);
    ck_assert_uint_eq(tell_sizes(bucket, 1, &steps).count, count);
    return count;
}

FIXTURE(set_up_store, tear_down_store);

TEST(sizes_count_what_is_stored_while_they_are_on)
{
    put(s, STORE_SET, "before", "1", 0, NOW);
    ck_assert(!store_is_tracking_sizes(s));
    ck_assert_uint_eq(count_sized(2), 0);
    ck_assert(store_track_sizes(s, true));
    ck_assert(store_is_tracking_sizes(s));
    put(s, STORE_SET, "k", "1", 0, NOW); /* 67 bytes: the bucket up to 96 */
    put(s, STORE_SET, "l", "1", 0, NOW);
    ck_assert_uint_eq(count_sized(2), 2);
    drop("before", NOW);
    drop("l", NOW);
    ck_assert_uint_eq(count_sized(2), 1);
    expect_ok(put_sized(s, "k", 30, 0, NOW));
    ck_assert_uint_eq(count_sized(2), 0);
    ck_assert_uint_eq(count_sized(3), 1);
    ck_assert(store_track_sizes(s, false));
    put(s, STORE_SET, "m", "1", 0, NOW);
    expect_ok(put_sized(s, "k", 30, 0, NOW));
    ck_assert(store_track_sizes(s, true));
    ck_assert_uint_eq(count_sized(2), 0);
    ck_assert_uint_eq(count_sized(3), 0);
    expect_ok(put_sized(s, "big", MIB - 1024, 0, NOW));
    ck_assert_uint_eq(count_sized((MIB - 1024 + 48 + 8 + 4 + 11 + 2 - 1) / 32), 1);
}

TEST(sizes_need_cas_and_memory)
{
    atomic_store(&s->mem.fail_in, 1);
    ck_assert(!store_track_sizes(s, true));
    ck_assert(!store_is_tracking_sizes(s));
    ck_assert(store_track_sizes(s, true));
    conf.use_cas = false;
    reopen();
    ck_assert(!store_track_sizes(s, true));
    ck_assert(store_track_sizes(s, false));
}

/* With items of up to a gigabyte there are 32 million sizes. */
TEST(sizes_that_there_never_were_cost_next_to_nothing)
{
    unsigned steps;
    unsigned at = 0;
    struct reported t = {.size = 96};

    conf.item_max = 1u << 30;
    reopen_with(4096);
    ck_assert(store_track_sizes(s, true));
    put(s, STORE_SET, "k", "1", 0, NOW);
    expect_ok(put_sized(s, "l", 9 * MIB, 0, NOW));
    ck_assert_uint_eq(tell_sizes(2, 4096, &steps).sizes, 2);
    ck_assert_uint_le(steps,
                      20); /* 65536 blocks of sizes, and two with something in them */
    ck_assert(store_sizes_step(s, &at, 512, note_size, &t));
    ck_assert_uint_eq(t.sizes, 1);
    ck_assert_uint_lt(at, 512 * 512); /* 32 bytes each: not further than it may look */
}

/* A size that is told costs a look at sixteen that are not. */
TEST(sizes_are_told_a_few_at_a_time)
{
    struct reported t = {.size = 0};
    unsigned steps;
    unsigned at = 0;

    ck_assert(store_track_sizes(s, true));
    for (unsigned i = 0; i < 100; i++) {
        char key[8];

        snprintf(key, sizeof(key), "%u", i);
        expect_ok(put_sized(s, key, 100 + 32 * i, 0, NOW));
    }
    ck_assert(store_sizes_step(s, &at, 160, note_size, &t));
    ck_assert_uint_le(t.sizes, 10);
    ck_assert_uint_ge(t.sizes, 9);
    ck_assert_uint_eq(tell_sizes(0, 160, &steps).sizes, 100);
    ck_assert_uint_ge(steps, 10);
    ck_assert(store_track_sizes(s, false));
    ck_assert(!store_sizes_step(s, &at, 160, note_size, &t)); /* in the middle of it */
}

/* ---- items ---------------------------------------------------------------------------- */

static char dumped[256];

static bool
note_key(void *ctx, const struct item *it)
{
    unsigned *left = ctx;

    if (*left == 0) {
        return false;
    }
    (*left)--;
    strncat(dumped, item_key(it), item_key_len(it));
    return true;
}

static uint32_t
begin(uint32_t limit)
{
    dumped[0] = '\0';
    return store_dump_begin(s, 1, false, limit, NOW + 5);
}

static bool
go_on(uint32_t ticket, unsigned items)
{
    unsigned room = UINT_MAX;

    return store_dump_step(s, ticket, items, NOW + 5, note_key, &room);
}

static const char *
dump(bool hot_first, uint32_t limit, unsigned room)
{
    uint32_t ticket = store_dump_begin(s, 1, hot_first, limit, NOW + 5);

    dumped[0] = '\0';
    ck_assert(!store_dump_step(s, ticket, UINT_MAX, NOW + 5, note_key, &room));
    ck_assert(!store_dump_step(s, ticket, UINT_MAX, NOW + 5, note_key, &room));
    return dumped;
}

static void
put_letters(char first, char last)
{
    for (char c = first; c <= last; c++) {
        char key[2] = {c};

        put(s, STORE_SET, key, "1", c == 'c' ? NOW + 5 : 0, NOW);
    }
}

TEST(dumps_begin_with_the_newest)
{
    put_letters('a', 'f');
    ck_assert_str_eq(dump(false, 0, 99), "fedba");
    ck_assert_str_eq(dump(true, 0, 99), "fedba"); /* flat: there is only one list */
    ck_assert_str_eq(dump(false, 4, 99), "fedb");
    ck_assert_str_eq(dump(false, 0, 2), "fe");
}

/* Each entry that is looked at counts, dead or alive. */
TEST(a_step_looks_at_no_more_than_it_may)
{
    put_letters('a', 'f');
    uint32_t ticket = begin(0);
    ck_assert(go_on(ticket, 2));
    ck_assert_str_eq(dumped, "fe");
    ck_assert(go_on(ticket, 2));
    ck_assert_str_eq(dumped, "fed"); /* c has expired */
    ck_assert(!go_on(ticket, 2));
    ck_assert_str_eq(dumped, "fedba");
    ck_assert(!go_on(ticket, 2));
    ck_assert_str_eq(dumped, "fedba");
    ticket = begin(2);
    ck_assert(go_on(ticket, 1));
    ck_assert(!go_on(ticket, 1));
    ck_assert_str_eq(dumped, "fe");
}

TEST(what_comes_and_goes_between_steps_does_not_stop_a_dump)
{
    put_letters('a', 'f');
    uint32_t ticket = begin(0);
    ck_assert(go_on(ticket, 2));
    ck_assert_int_eq(store_delete(s, key_of("d"), NULL, NOW, &r),
                     STORE_OK); /* the next */
    ck_assert_int_eq(store_delete(s, key_of("e"), NULL, NOW, &r),
                     STORE_OK);          /* the last */
    put(s, STORE_SET, "b", "2", 0, NOW); /* goes to the head */
    put_letters('x', 'z');
    ck_assert(!go_on(ticket, 10));
    ck_assert_str_eq(dumped, "fea");
    audit_store(s);
}

/* One too many takes the place of the one that has not gone on for longest. */
TEST(dumps_are_few)
{
    uint32_t tickets[STORE_DUMPS];

    put_letters('a', 'f');
    for (unsigned i = 0; i < STORE_DUMPS; i++) {
        tickets[i] = begin(0);
    }
    ck_assert(go_on(tickets[0], 1));
    uint32_t more = begin(0);
    ck_assert(go_on(more, 1));
    ck_assert(!go_on(tickets[1], 1));
    for (unsigned i = 0; i < STORE_DUMPS; i++) {
        ck_assert(i == 1 || go_on(tickets[i], 1));
    }
    ck_assert(!go_on(more, 10));
    ck_assert(go_on(begin(0), 1)); /* in the place that has become free */
    ck_assert(go_on(tickets[0], 1));
}

TEST(a_dump_that_does_not_go_on_ends)
{
    uint32_t slow, quick;

    put_letters('a', 'f');
    slow = begin(0);
    ck_assert(go_on(slow, 1));
    store_walk_expire(s, NOW + 5 + 60);
    ck_assert(go_on(slow, 1));
    quick = store_dump_begin(s, 1, false, 0, NOW + 6);
    store_walk_expire(s, NOW + 6 + 60);
    ck_assert(!go_on(slow, 1));
    ck_assert(go_on(quick, 1));
    store_walk_expire(s, NOW + 100 + 60);
    audit_store(s);
}
