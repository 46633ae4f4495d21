/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the binary and meta protocols ask of one key: conditions on the CAS number, items that
 * a look or a count creates, the recache token, stale items, binary keys.
 */
#include "fixture_store.h"

static struct store_seen seen;

static struct key
k(void)
{
    return key_of("k");
}

static enum store_status
put_as(const struct store_put *how, const char *value, uint32_t exptime, uint32_t now)
{
    struct item *it;

    expect_ok(store_reserve(s, k(), 3, exptime, (uint32_t)strlen(value), now, &it));
    fill_item(it, value, strlen(value));
    return store_commit(s, it, how, now, &r);
}

static enum store_status
look(const struct store_look *ask, uint32_t now)
{
    struct item *it;
    enum store_status status = store_look(s, k(), ask, now, &seen, &it);

    ck_assert((status == STORE_OK) == (it != NULL));
    if (it != NULL) {
        store_release(s, it);
    }
    return status;
}

static const struct store_look glance;
static const struct store_look taker = {.takes_stale = true};

/* ---- compare --------------------------------------------------------------------------- */

static const struct {
    enum store_mode mode;
    bool is_present, creates, accepts_stale;
    int compare; /* with the CAS of the item: 0 the same, -1 lower, 1 higher; 9 none */
    enum store_status status;
    const char *after; /* NULL: absent */
} put_cases[] = {
    {STORE_SET, false, false, false, 9, STORE_OK, "new"},
    {STORE_SET, false, false, false, 0, STORE_MISS, NULL},
    {STORE_SET, true, false, false, 0, STORE_OK, "new"},
    {STORE_SET, true, false, false, -1, STORE_EXISTS, "old"},
    {STORE_SET, true, false, false, 1, STORE_EXISTS, "old"},
    {STORE_SET, true, false, true, -1, STORE_OK, "new"},
    {STORE_SET, true, false, true, 0, STORE_OK, "new"},
    {STORE_SET, true, false, true, 1, STORE_EXISTS, "old"},
    {STORE_SET, false, false, true, -1, STORE_MISS, NULL},
    {STORE_ADD, false, false, false, 0, STORE_OK, "new"},
    {STORE_ADD, true, false, false, 0, STORE_NOT_STORED, "old"},
    {STORE_REPLACE, false, false, false, 9, STORE_NOT_STORED, NULL},
    {STORE_REPLACE, false, false, false, 0, STORE_MISS, NULL},
    {STORE_REPLACE, true, false, false, 0, STORE_OK, "new"},
    {STORE_REPLACE, true, false, false, 1, STORE_EXISTS, "old"},
    {STORE_APPEND, false, false, false, 9, STORE_NOT_STORED, NULL},
    {STORE_APPEND, false, false, false, 0, STORE_NOT_STORED, NULL},
    {STORE_APPEND, false, true, false, 9, STORE_OK, "new"},
    {STORE_APPEND, false, true, false, 0, STORE_NOT_STORED, NULL},
    {STORE_APPEND, true, true, false, 0, STORE_OK, "oldnew"},
    {STORE_APPEND, true, false, false, -1, STORE_EXISTS, "old"},
    {STORE_APPEND, true, false, true, -1, STORE_OK, "oldnew"},
    {STORE_PREPEND, false, false, false, 9, STORE_NOT_STORED, NULL},
    {STORE_PREPEND, false, true, false, 9, STORE_OK, "new"},
    {STORE_PREPEND, true, false, false, 0, STORE_OK, "newold"},
    {STORE_PREPEND, true, false, false, 1, STORE_EXISTS, "old"},
};

FIXTURE(set_up_store, tear_down_store);

TEST_ROWS(conditions_follow_the_table, put_cases, NULL)
{
    struct store_put how = {.mode = row->mode,
                            .has_compare = row->compare != 9,
                            .accepts_stale = row->accepts_stale,
                            .creates = row->creates,
                            .compare = 50 + (uint64_t)(int64_t)row->compare};

    if (row->is_present) {
        struct store_put first = {.mode = STORE_SET, .new_cas = 50};

        expect_ok(put_as(&first, "old", NOW + 30, NOW));
        ck_assert_uint_eq(r.cas, 50);
    }
    ck_assert_int_eq(put_as(&how, "new", NOW + 60, NOW), row->status);
    ck_assert_uint_eq(r.cas, row->status == STORE_OK ? 1 : 0);
    ck_assert_uint_eq(r.class_id, row->after != NULL);
    if (row->after == NULL) {
        ck_assert_int_eq(look(&glance, NOW), STORE_MISS);
        return;
    }
    ck_assert_uint_eq(r.value_len, strlen(row->after));
    ck_assert_uint_eq(r.total, totals_of(s).item_bytes);
    ck_assert(has(s, "k", row->after, NOW));
    expect_ok(look(&glance, NOW));
    ck_assert_uint_eq(seen.exptime_before, r.exptime_after);
    ck_assert(seen.is_stale ==
              (row->accepts_stale && row->compare == -1 && row->status == STORE_OK));
    if (seen.is_stale || strlen(row->after) > 3 || row->status != STORE_OK) {
        ck_assert_uint_eq(seen.exptime_before, NOW + 30);
    } else {
        ck_assert_uint_eq(seen.exptime_before, NOW + 60);
    }
}

TEST(a_chosen_number_is_not_counted)
{
    struct store_put how = {.mode = STORE_SET, .new_cas = UINT64_MAX - 3};

    expect_ok(put_as(&how, "a", 0, NOW));
    ck_assert_uint_eq(r.cas, UINT64_MAX - 3);
    how.new_cas = 0;
    expect_ok(put_as(&how, "b", 0, NOW));
    ck_assert_uint_eq(r.cas, 1);
}

/* A flush parts what was before from what comes, whatever the numbers say. */
TEST(a_chosen_number_neither_survives_a_flush_nor_dies_of_one)
{
    struct store_put high = {.mode = STORE_SET, .new_cas = UINT64_MAX};
    struct store_put low = {.mode = STORE_SET, .new_cas = 1};

    for (unsigned i = 0; i < 10; i++) {
        put(s, STORE_SET, "other", "x", 0, NOW);
    }
    expect_ok(put_as(&high, "a", 0, NOW));
    store_flush(s, 0, NOW);
    ck_assert_int_eq(look(&glance, NOW), STORE_GONE_FLUSHED);
    expect_ok(put_as(&low, "a", 0, NOW));
    ck_assert(has(s, "k", "a", NOW));
}

TEST(no_number_of_flushes_brings_an_item_back)
{
    put(s, STORE_SET, "k", "a", 0, NOW);
    for (unsigned i = 0; i < 65536; i++) {
        store_flush(s, 0, NOW + i / 60000);
    }
    ck_assert_int_eq(look(&glance, NOW + 1), STORE_GONE_FLUSHED);
    put(s, STORE_SET, "k", "b", 0, NOW + 2);
    ck_assert(has(s, "k", "b", NOW + 2));
}

/* ---- looks ----------------------------------------------------------------------------- */

TEST(a_glance_leaves_no_trace)
{
    put(s, STORE_SET, "k", "a", NOW + 200, NOW);
    for (unsigned i = 0; i < 2; i++) {
        expect_ok(look(&glance, NOW + 100));
        ck_assert(!seen.was_fetched && !seen.is_won && !seen.is_won_before &&
                  !seen.is_stale && !seen.is_created);
        ck_assert_uint_eq(seen.last_access, NOW);
        ck_assert_uint_eq(seen.exptime_before, NOW + 200);
        ck_assert_uint_eq(seen.exptime_after, NOW + 200);
        ck_assert_uint_eq(seen.cas, 1);
    }
}

TEST(a_use_shows_to_the_next)
{
    struct store_look use = {.is_use = true};

    put(s, STORE_SET, "k", "a", 0, NOW);
    expect_ok(look(&use, NOW + 100));
    ck_assert(!seen.was_fetched);
    ck_assert_uint_eq(seen.last_access, NOW);
    expect_ok(look(&use, NOW + 100));
    ck_assert(seen.was_fetched);
    ck_assert_uint_eq(seen.last_access, NOW + 100);
}

TEST(a_miss_creates_an_empty_item_for_one)
{
    struct store_look ask = {.is_use = true,
                             .creates = true,
                             .create_exptime = NOW + 30,
                             .is_binary_key = true,
                             .new_cas = 77};
    struct item *it;

    expect_ok(store_look(s, k(), &ask, NOW, &seen, &it));
    ck_assert(seen.is_created && seen.is_won && !seen.is_won_before && !seen.was_fetched);
    ck_assert_uint_eq(seen.cas, 77);
    ck_assert_uint_eq(seen.exptime_after, NOW + 30);
    ck_assert_uint_eq(item_value_len(it), 0);
    ck_assert_uint_eq(item_flags(it), 0);
    ck_assert(item_has_binary_key(it));
    ck_assert(item_was_fetched(it));
    ck_assert_uint_eq(item_expires(it), NOW + 30);
    ck_assert_uint_eq(item_accessed(it), NOW);
    free(read_item(it)); /* checks CR LF */
    store_release(s, it);
    expect_ok(look(&ask, NOW));
    ck_assert(!seen.is_created && !seen.is_won && seen.is_won_before && seen.was_fetched);
    /* Storing makes a new item, without a token. */
    put(s, STORE_SET, "k", "a", 0, NOW);
    expect_ok(look(&ask, NOW));
    ck_assert(!seen.is_won && !seen.is_won_before);
    expect_ok(look(&ask, NOW));
    ck_assert(!seen.is_won_before);
}

TEST(what_has_expired_is_created_anew)
{
    struct store_look ask = {.creates = true};

    put(s, STORE_SET, "k", "a", NOW + 1, NOW);
    expect_ok(look(&ask, NOW + 1));
    ck_assert(seen.is_created);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
}

TEST(creating_needs_memory)
{
    struct store_look ask = {.creates = true};

    atomic_store(&s->mem.fail_in, 1);
    ck_assert_int_eq(look(&ask, NOW), STORE_NO_MEMORY);
    ck_assert(!seen.is_created && !seen.is_won);
    expect_ok(look(&ask, NOW));
}

TEST(one_client_refreshes_what_is_about_to_end)
{
    struct store_look ask = {.recaches = true, .recache_below = 10};

    put(s, STORE_SET, "k", "a", NOW + 20, NOW);
    expect_ok(look(&ask, NOW + 10));
    ck_assert(!seen.is_won); /* 10 left are not fewer than 10 */
    expect_ok(look(&ask, NOW + 11));
    ck_assert(seen.is_won && !seen.is_won_before);
    expect_ok(look(&ask, NOW + 11));
    ck_assert(!seen.is_won && seen.is_won_before);
    put(s, STORE_SET, "k", "a", 0, NOW);
    expect_ok(look(&ask, NOW));
    ck_assert(!seen.is_won); /* never ends */
}

TEST_LOOP(a_touch_counts_before_or_behind_the_recache, 2)
{
    struct store_look ask = {.touches = true,
                             .exptime = NOW + 300,
                             .recaches = true,
                             .recache_below = 100,
                             .recache_sees_touch = _i == 1};

    put(s, STORE_SET, "k", "a", NOW + 20, NOW);
    expect_ok(look(&ask, NOW));
    ck_assert(seen.is_won == (_i == 0));
    ck_assert_uint_eq(seen.exptime_before, NOW + 20);
    ck_assert_uint_eq(seen.exptime_after, NOW + 300);
    ck_assert(has(s, "k", "a", NOW + 299));
    ck_assert_int_eq(lookup(s, "k", NOW + 300), STORE_GONE_EXPIRED);
}

/* ---- cuts ------------------------------------------------------------------------------ */

static enum store_status
cut(const struct store_cut *how, uint32_t now)
{
    return store_delete(s, k(), how, now, &r);
}

TEST(delete_may_compare)
{
    struct store_cut how = {.has_compare = true, .compare = 2};

    ck_assert_int_eq(cut(&how, NOW), STORE_MISS);
    ck_assert_uint_eq(r.class_id, 0);
    put(s, STORE_SET, "k", "a", 0, NOW);
    ck_assert_int_eq(cut(&how, NOW), STORE_EXISTS);
    ck_assert_uint_eq(r.class_id, 1);
    how.compare = 1;
    expect_ok(cut(&how, NOW));
    ck_assert_uint_eq(r.cas, 0);
    assert_empty(s);
}

TEST(stale_items_are_refreshed_by_one_client)
{
    struct store_cut how = {.marks_stale = true, .touches = true, .exptime = NOW + 30};
    struct store_put late = {
        .mode = STORE_SET, .has_compare = true, .accepts_stale = true, .compare = 1};

    put(s, STORE_SET, "k", "a", 0, NOW);
    expect_ok(cut(&how, NOW));
    ck_assert_uint_eq(r.cas, 2);
    ck_assert_uint_eq(r.exptime_before, STORE_NEVER);
    ck_assert_uint_eq(r.exptime_after, NOW + 30);
    ck_assert(has(s, "k", "a", NOW));
    expect_ok(look(&glance, NOW));
    ck_assert(seen.is_stale && !seen.is_won);
    expect_ok(look(&taker, NOW));
    ck_assert(seen.is_stale && seen.is_won);
    ck_assert_uint_eq(seen.cas, 2);
    expect_ok(look(&taker, NOW));
    ck_assert(seen.is_stale && !seen.is_won && seen.is_won_before);
    /* Who computed an older value may still store it. */
    expect_ok(put_as(&late, "b", NOW + 500, NOW));
    ck_assert_uint_eq(r.exptime_after, NOW + 30);
    ck_assert(has(s, "k", "b", NOW));
    expect_ok(look(&glance, NOW));
    ck_assert(seen.is_stale && seen.is_won_before && !seen.is_won);
    /* Again: the token is free. */
    how.new_cas = 9;
    how.touches = false;
    expect_ok(cut(&how, NOW));
    ck_assert_uint_eq(r.cas, 9);
    ck_assert_uint_eq(r.exptime_after, NOW + 30);
    expect_ok(look(&taker, NOW));
    ck_assert(seen.is_stale && seen.is_won);
    expect_ok(put(s, STORE_APPEND, "k", "!", 0, NOW));
    expect_ok(look(&glance, NOW));
    ck_assert(!seen.is_stale && !seen.is_won_before);
}

TEST(emptied_items_stay)
{
    struct store_cut how = {.empties = true, .client_flags = 5};
    struct item *held, *it;

    put_full(s, STORE_SET, k(), "abc", 3, 7, NOW + 5, 0, NOW, &r);
    expect_ok(store_get(s, k(), NOW, &held));
    expect_ok(cut(&how, NOW));
    ck_assert_uint_eq(r.cas, 1); /* as before */
    ck_assert_uint_eq(r.value_len, 0);
    ck_assert_uint_eq(r.exptime_after, STORE_NEVER);
    expect_ok(store_get(s, k(), NOW + 9, &it));
    ck_assert_uint_eq(item_value_len(it), 0);
    ck_assert_uint_eq(item_flags(it), 5);
    ck_assert_uint_eq(item_cas(it), 1);
    store_release(s, it);
    ck_assert_uint_eq(item_value_len(held), 3);
    store_release(s, held);
    how.marks_stale = true;
    how.touches = true;
    how.exptime = NOW + 40;
    how.new_cas = 30;
    expect_ok(cut(&how, NOW + 9));
    ck_assert_uint_eq(r.cas, 30);
    expect_ok(look(&taker, NOW + 9));
    ck_assert(seen.is_stale && seen.is_won);
    ck_assert_uint_eq(seen.exptime_after, NOW + 40);
    expect_ok(cut(NULL, NOW + 9));
    assert_empty(s);
}

TEST(emptying_needs_memory)
{
    struct store_cut how = {.empties = true};

    expect_ok(put_sized(s, "k", 100000, 0, NOW));
    atomic_store(&s->mem.fail_in, 1);
    ck_assert_int_eq(cut(&how, NOW), STORE_NO_MEMORY);
    ck_assert(is_there(s, "k", NOW));
    expect_ok(cut(&how, NOW));
    ck_assert(has(s, "k", "", NOW));
}

/* ---- sums ------------------------------------------------------------------------------ */

TEST(a_count_may_create)
{
    struct store_sum sum = {.increments = true,
                            .creates = true,
                            .is_binary_key = true,
                            .delta = 5,
                            .initial = 42,
                            .create_exptime = NOW + 10};
    expect_ok(store_arith(s, k(), &sum, NOW, number, &digits, &r));
    ck_assert(r.is_created && r.is_binary_key);
    ck_assert_uint_eq(r.cas, 1);
    ck_assert_uint_eq(r.class_id, 1);
    ck_assert_mem_eq(number, "42", digits);
    ck_assert(has(s, "k", "42", NOW + 9));
    sum.new_cas = 70;
    sum.touches = true;
    sum.exptime = NOW + 100;
    expect_ok(store_arith(s, k(), &sum, NOW, number, &digits, &r));
    ck_assert(!r.is_created && r.is_binary_key);
    ck_assert_uint_eq(r.cas, 70);
    ck_assert_uint_eq(r.exptime_before, NOW + 10);
    ck_assert_uint_eq(r.exptime_after, NOW + 100);
    ck_assert(has(s, "k", "47", NOW + 99));
    sum.has_compare = true;
    sum.compare = 69;
    ck_assert_int_eq(store_arith(s, k(), &sum, NOW, number, &digits, &r), STORE_EXISTS);
    ck_assert_uint_eq(digits, 0);
    ck_assert_uint_eq(r.class_id, 1);
    sum.compare = 70;
    sum.delta = 100; /* longer: a new item */
    expect_ok(store_arith(s, k(), &sum, NOW, number, &digits, &r));
    ck_assert(r.is_binary_key);
    ck_assert_uint_eq(r.cas, 70);
    ck_assert_uint_eq(r.exptime_after, NOW + 100);
    ck_assert(has(s, "k", "147", NOW + 99));
    ck_assert_int_eq(lookup(s, "k", NOW + 100), STORE_GONE_EXPIRED);
}

TEST(binary_keys_are_marked_by_the_store_that_links)
{
    struct store_put set = {.mode = STORE_SET}, append = {.mode = STORE_APPEND};
    struct item *it;

    expect_ok(store_reserve(s, k(), 0, 0, 1, NOW, &it));
    fill_item(it, "a", 1);
    item_mark_binary_key(it);
    expect_ok(store_commit(s, it, &set, NOW, &r));
    ck_assert(r.is_binary_key);
    expect_ok(store_touch(s, k(), NOW + 5, NOW, &r));
    ck_assert(r.is_binary_key);
    ck_assert_uint_eq(r.exptime_after, NOW + 5);
    expect_ok(put_as(&append, "b", 0, NOW));
    ck_assert(!r.is_binary_key);
}
