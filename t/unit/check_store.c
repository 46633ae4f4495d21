/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The store's operations on single keys: storage conditions, expiry, flush, numbers,
 * references.
 */
#include "fixture_store.h"

static struct key
k(void)
{
    return key_of("k");
}

FIXTURE(set_up_store, tear_down_store);

TEST(modes_ask_for_presence)
{
    ck_assert_int_eq(put(s, STORE_REPLACE, "k", "r", 0, NOW), STORE_NOT_STORED);
    ck_assert_int_eq(put(s, STORE_APPEND, "k", "r", 0, NOW), STORE_NOT_STORED);
    ck_assert_int_eq(put(s, STORE_PREPEND, "k", "r", 0, NOW), STORE_NOT_STORED);
    ck_assert_int_eq(put_full(s, STORE_SET, k(), "r", 1, 0, 0, 9, NOW, &r), STORE_MISS);
    ck_assert_int_eq(lookup(s, "k", NOW), STORE_MISS);
    assert_empty(s);
    expect_ok(put(s, STORE_ADD, "k", "a", 0, NOW));
    ck_assert_int_eq(put(s, STORE_ADD, "k", "b", 0, NOW), STORE_NOT_STORED);
    ck_assert(has(s, "k", "a", NOW));
    expect_ok(put(s, STORE_REPLACE, "k", "rr", 0, NOW));
    ck_assert(has(s, "k", "rr", NOW));
    expect_ok(put(s, STORE_APPEND, "k", ">", 0, NOW));
    expect_ok(put(s, STORE_PREPEND, "k", "<", 0, NOW));
    ck_assert(has(s, "k", "<rr>", NOW));
    expect_ok(put(s, STORE_SET, "k", "", 0, NOW));
    ck_assert(has(s, "k", "", NOW));
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
    ck_assert_uint_eq(totals_of(s).count.total_items, 5);
}

TEST(append_keeps_flags_and_exptime)
{
    expect_ok(put_full(s, STORE_SET, k(), "a", 1, 7, NOW + 5, 0, NOW, &r));
    expect_ok(put_full(s, STORE_APPEND, k(), "b", 1, 9, 0, 0, NOW, &r));
    struct item *it = hold("k", NOW);
    ck_assert_uint_eq(item_flags(it), 7);
    store_release(s, it);
    ck_assert(has(s, "k", "ab", NOW + 4));
    ck_assert_int_eq(lookup(s, "k", NOW + 5), STORE_GONE_EXPIRED);
}

TEST(cas_numbers_count_links)
{
    expect_ok(put_full(s, STORE_SET, k(), "a", 1, 0, 0, 0, NOW, &r));
    ck_assert_uint_eq(r.cas, 1);
    ck_assert_uint_eq(r.class_id, 1);
    ck_assert_int_eq(put_full(s, STORE_SET, k(), "b", 1, 0, 0, 2, NOW, &r), STORE_EXISTS);
    ck_assert_uint_eq(r.cas, 0);
    ck_assert_uint_eq(r.class_id, 1);
    expect_ok(put_full(s, STORE_SET, k(), "b", 1, 0, 0, 1, NOW, &r));
    ck_assert_uint_eq(r.cas, 2);
    struct item *it = hold("k", NOW);
    ck_assert_uint_eq(item_cas(it), 2);
    ck_assert_uint_eq(item_class(it), 1);
    ck_assert_uint_eq(item_key_len(it), 1);
    ck_assert_mem_eq(item_key(it), "k", 1);
    store_release(s, it);
}

TEST(without_cas_numbers_are_zero)
{
    conf.use_cas = false;
    reopen();
    ck_assert_int_eq(put_full(s, STORE_SET, k(), "a", 1, 0, 0, 5, NOW, &r), STORE_MISS);
    expect_ok(put_full(s, STORE_SET, k(), "a", 1, 0, 0, 0, NOW, &r));
    ck_assert_uint_eq(r.cas, 0);
    expect_ok(put_full(s, STORE_SET, k(), "b", 1, 0, 0, 5, NOW, &r));
    struct item *it = hold("k", NOW);
    ck_assert_uint_eq(item_cas(it), 0);
    store_release(s, it);
    ck_assert(has(s, "k", "b", NOW));
}

TEST(every_key_length_is_found)
{
    char text[STORE_KEY_MAX];
    memset(text, 'y', sizeof(text));
    for (size_t len = 1; len <= STORE_KEY_MAX; len++) {
        struct key key = {text, len};

        expect_ok(put_full(s, STORE_ADD, key, text, len, 0, 0, 0, NOW, &r));
    }
    for (size_t len = 1; len <= STORE_KEY_MAX; len++) {
        struct key key = {text, len};
        struct item *it;

        expect_ok(store_get(s, key, NOW, &it));
        ck_assert_uint_eq(item_value_len(it), len);
        store_release(s, it);
        expect_ok(store_delete(s, key, NULL, NOW, &r));
        ck_assert_uint_gt(r.class_id, 0);
    }
    assert_empty(s);
}

TEST(expired_items_are_gone_once)
{
    expect_ok(put(s, STORE_SET, "k", "a", NOW + 2, NOW));
    ck_assert(has(s, "k", "a", NOW + 1));
    ck_assert_int_eq(lookup(s, "k", NOW + 2), STORE_GONE_EXPIRED);
    ck_assert_int_eq(lookup(s, "k", NOW + 2), STORE_MISS);
    assert_empty(s);
    expect_ok(put(s, STORE_SET, "k", "a", STORE_EXPIRED, NOW));
    ck_assert_int_eq(put(s, STORE_REPLACE, "k", "b", 0, NOW), STORE_NOT_STORED);
    expect_ok(put(s, STORE_SET, "k", "a", STORE_EXPIRED, NOW));
    expect_ok(put(s, STORE_ADD, "k", "b", 0, NOW));
    ck_assert(has(s, "k", "b", NOW));
    expect_ok(store_touch(s, k(), STORE_EXPIRED, NOW, &r));
    ck_assert_int_eq(store_touch(s, k(), 0, NOW, &r), STORE_MISS);
    ck_assert_int_eq(store_delete(s, k(), NULL, NOW, &r), STORE_MISS);
    assert_empty(s);
}

TEST(touch_moves_the_end)
{
    struct item *it;

    ck_assert_int_eq(store_touch(s, k(), 0, NOW, &r), STORE_MISS);
    expect_ok(put(s, STORE_SET, "k", "a", NOW + 2, NOW));
    expect_ok(store_touch(s, k(), NOW + 10, NOW, &r));
    ck_assert_uint_eq(r.cas, 1);
    ck_assert(has(s, "k", "a", NOW + 9));
    expect_ok(store_get_and_touch(s, k(), STORE_EXPIRED, NOW, &it));
    store_release(s, it);
    ck_assert_int_eq(store_get_and_touch(s, k(), 0, NOW, &it), STORE_GONE_EXPIRED);
    ck_assert_int_eq(store_get_and_touch(s, k(), 0, NOW, &it), STORE_MISS);
}

/* ---- flush --------------------------------------------------------------------------- */

/* What is flushed may have been reclaimed by a store into the same class meanwhile, so some of
 * these ask only whether it is there. */
TEST(flush_now_parts_the_same_second)
{
    put(s, STORE_SET, "k", "a", 0, NOW);
    store_flush(s, 0, NOW);
    ck_assert_uint_eq(totals_of(s).flush_time, NOW);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
    ck_assert_int_eq(lookup(s, "k", NOW), STORE_GONE_FLUSHED);
    put(s, STORE_SET, "l", "b", 0, NOW);
    ck_assert_int_eq(lookup(s, "k", NOW), STORE_MISS);
    ck_assert(has(s, "l", "b", NOW));
    store_flush(s, 0, NOW);
    ck_assert_int_eq(lookup(s, "l", NOW), STORE_GONE_FLUSHED);
}

/* Flushes are numbered modulo 2^16: what an earlier one killed stays dead, what is stored
 * after one stays. */
TEST(flushes_may_be_many)
{
    put(s, STORE_SET, "old", "a", 0, NOW);
    for (unsigned i = 1; i <= 140000; i++) {
        uint32_t now = NOW + i / 10000;
        store_flush(s, 0, now);
        ck_assert(!has(s, "old", "a", now));
        put(s, STORE_SET, "k", "v", 0, now);
        ck_assert(has(s, "k", "v", now));
        if (i % 10000 == 0) {
            put(s, STORE_SET, "old", "a", 0, now);
        }
    }
}

/* All numbers within one second: the rest of that second is lost, and nothing comes back. */
TEST(flushes_may_be_very_many)
{
    for (unsigned i = 0; i < 65536; i++) {
        put(s, STORE_SET, i % 2 ? "a" : "b", "v", 0, NOW);
        store_flush(s, 0, NOW);
        ck_assert(!has(s, "a", "v", NOW));
        ck_assert(!has(s, "b", "v", NOW));
    }
    put(s, STORE_SET, "k", "v", 0, NOW + 1);
    ck_assert(has(s, "k", "v", NOW + 1));
}

TEST(flush_without_cas_takes_the_whole_second)
{
    conf.use_cas = false;
    reopen();
    put(s, STORE_SET, "k", "a", 0, NOW);
    store_flush(s, 0, NOW);
    put(s, STORE_SET, "l", "b", 0, NOW);
    ck_assert(!is_there(s, "k", NOW));
    ck_assert(!is_there(s, "l", NOW));
    put(s, STORE_SET, "m", "c", 0, NOW + 1);
    ck_assert(has(s, "m", "c", NOW + 1));
}

TEST_LOOP(future_flush_waits, 2)
{
    conf.use_cas = _i == 0;
    reopen();
    put(s, STORE_SET, "k", "a", 0, NOW);
    store_flush(s, NOW + 2, NOW);
    ck_assert_uint_eq(totals_of(s).flush_time, NOW + 2);
    ck_assert(has(s, "k", "a", NOW + 1));
    put(s, STORE_SET, "l", "b", 0, NOW + 1);
    put(s, STORE_SET, "m", "b", 0, NOW + 2);
    put(s, STORE_SET, "n", "b", 0, NOW + 3);
    ck_assert(!is_there(s, "k", NOW + 2));
    ck_assert(!is_there(s, "l", NOW + 2));
    ck_assert(!is_there(s, "m", NOW + 3));
    ck_assert(has(s, "n", "b", NOW + 3));
}

TEST(only_the_latest_future_flush_counts)
{
    put(s, STORE_SET, "k", "a", 0, NOW);
    store_flush(s, NOW + 2, NOW);
    store_flush(s, NOW + 9, NOW);
    ck_assert(has(s, "k", "a", NOW + 5));
    store_flush(s, 0, NOW + 5);
    put(s, STORE_SET, "l", "a", 0, NOW + 5);
    ck_assert(!is_there(s, "k", NOW + 5));
    ck_assert(has(s, "l", "a", NOW + 9));
}

TEST_LOOP(a_flush_is_never_undone, 2)
{
    conf.use_cas = _i == 0;
    reopen();
    put(s, STORE_SET, "a", "1", 0, NOW);
    put(s, STORE_SET, "b", "1", 0, NOW);
    store_flush(s, NOW + 2, NOW);
    /* It strikes at NOW + 2; later ones overwrite the time. */
    put(s, STORE_SET, "c", "1", 0, NOW + 3);
    store_flush(s, NOW + 50, NOW + 4);
    ck_assert(!is_there(s, "a", NOW + 4));
    ck_assert(has(s, "c", "1", NOW + 4));
    store_flush(s, 0, NOW + 5);
    store_flush(s, NOW + 90, NOW + 6);
    ck_assert(!is_there(s, "b", NOW + 6));
    ck_assert(!is_there(s, "c", NOW + 6));
}

TEST(flushed_is_absent_for_writers)
{
    put(s, STORE_SET, "k", "1", 0, NOW);
    store_flush(s, 0, NOW);
    ck_assert_int_eq(put(s, STORE_APPEND, "k", "2", 0, NOW), STORE_NOT_STORED);
    put(s, STORE_SET, "k", "1", 0, NOW);
    store_flush(s, 0, NOW);
    ck_assert_int_eq(count_by("k", true, 1), STORE_MISS);
    put(s, STORE_SET, "k", "1", 0, NOW);
    store_flush(s, 0, NOW);
    expect_ok(put(s, STORE_ADD, "k", "3", 0, NOW));
    ck_assert(has(s, "k", "3", NOW));
}

/* ---- numbers ------------------------------------------------------------------------- */

static const struct {
    const char *before;
    bool increment;
    uint64_t delta;
    const char *reply; /* NULL: not a number */
    const char *after;
} number_cases[] = {
    {"0", true, 1, "1", "1"},
    {"9", true, 1, "10", "10"},
    {"10", false, 1, "9", "9 "},
    {"5", false, 6, "0", "0"},
    {"1000", false, 1000, "0", "0   "},
    {"18446744073709551615", true, 1, "0", "0                   "},
    {"18446744073709551614", true, 1, "18446744073709551615", "18446744073709551615"},
    {"18446744073709551615", true, UINT64_MAX, "18446744073709551614",
     "18446744073709551614"},
    {"1", true, UINT64_MAX, "0", "0"},
    {"99 ", true, 1, "100", "100"},
    {"12 34", true, 1, "13", "13   "},
    {" 7", true, 1, "8", "8 "},
    {"\t7\r\n", true, 1, "8", "8   "},
    {"007", true, 1, "8", "8  "},
    {"00000000000000000007", true, 1, "8", "8                   "},
    {"0000000000000000000000000", true, 1, "1", "1                        "},
    {"0000000000000000000000007", true, 1, "8", "8                        "},
    {"18446744073709551616", true, 1, NULL, NULL},
    {"99999999999999999999", false, 1, NULL, NULL},
    {"", true, 1, NULL, NULL},
    {"   ", true, 1, NULL, NULL},
    {"-1", true, 1, NULL, NULL},
    {"-0", true, 1, "1", "1 "},
    {"+5", true, 1, "6", "6 "},
    {"+18446744073709551615", true, 1, "0", "0                    "},
    {"+-5", true, 1, NULL, NULL},
    {"+ 5", true, 1, NULL, NULL},
    {"1x", true, 1, NULL, NULL},
    {"x", true, 1, NULL, NULL},
    {"0x10", true, 1, NULL, NULL},
};

TEST_ROWS(arith_follows_the_table, number_cases, row->before)
{
    ck_assert_int_eq(count_by("k", true, 1), STORE_MISS);
    ck_assert_uint_eq(r.class_id, 0);
    put(s, STORE_SET, "k", row->before, 0, NOW);
    enum store_status status = count_by("k", row->increment, row->delta);
    if (row->reply == NULL) {
        ck_assert_int_eq(status, STORE_NOT_NUMERIC);
        ck_assert(has(s, "k", row->before, NOW));
        return;
    }
    expect_ok(status);
    ck_assert_uint_eq(digits, strlen(row->reply));
    ck_assert_mem_eq(number, row->reply, digits);
    ck_assert(has(s, "k", row->after, NOW));
    ck_assert_uint_eq(r.cas, 2);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
}

TEST(arith_keeps_flags_and_exptime)
{
    put_full(s, STORE_SET, k(), "9", 1, 77, NOW + 5, 0, NOW, &r);
    expect_ok(count_by("k", true, 1));
    struct item *it = hold("k", NOW);
    ck_assert_uint_eq(item_flags(it), 77);
    ck_assert_uint_eq(item_cas(it), r.cas);
    store_release(s, it);
    ck_assert_int_eq(lookup(s, "k", NOW + 5), STORE_GONE_EXPIRED);
}

/* ---- references ---------------------------------------------------------------------- */

static void
expect_text(const struct item *it, const char *text)
{
    FREED char *value = read_item(it);

    ck_assert_str_eq(value, text);
}

TEST(a_reference_keeps_the_bytes)
{
    struct item *first, *second, *third, *fourth;

    put(s, STORE_SET, "k", "100", 0, NOW);
    expect_ok(store_get(s, k(), NOW, &first));
    expect_ok(count_by("k", false, 1));
    /* Somebody held it: a new item of exact length. */
    ck_assert(has(s, "k", "99", NOW));
    expect_text(first, "100");
    expect_ok(store_get(s, k(), NOW, &second));
    put(s, STORE_SET, "k", "other", 0, NOW);
    expect_text(second, "99");
    expect_ok(store_get(s, k(), NOW, &third));
    put(s, STORE_APPEND, "k", "!", 0, NOW);
    expect_text(third, "other");
    expect_ok(store_get(s, k(), NOW, &fourth));
    drop("k", NOW);
    ck_assert_int_eq(lookup(s, "k", NOW), STORE_MISS);
    expect_text(fourth, "other!");
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 4);
    store_release(s, first);
    store_release(s, second);
    store_release(s, third);
    store_release(s, fourth);
    assert_empty(s);
}

TEST(an_expired_item_lives_for_its_reader)
{
    put(s, STORE_SET, "k", "a", NOW + 1, NOW);
    struct item *it = hold("k", NOW);
    ck_assert_int_eq(lookup(s, "k", NOW + 1), STORE_GONE_EXPIRED);
    expect_text(it, "a");
    store_release(s, it);
    assert_empty(s);
}

TEST(too_many_readers_are_refused)
{
    struct item *it = NULL, *none;

    put(s, STORE_SET, "k", "a", 0, NOW);
    for (unsigned i = 0; i < STORE_REFS_MAX; i++) {
        expect_ok(store_get(s, k(), NOW, &it));
    }
    ck_assert_int_eq(store_get(s, k(), NOW, &none), STORE_BUSY);
    ck_assert_ptr_null(none);
    store_release(s, it);
    expect_ok(store_get(s, k(), NOW, &none));
    for (unsigned i = 0; i < STORE_REFS_MAX; i++) {
        store_release(s, it);
    }
    ck_assert(has(s, "k", "a", NOW));
}

TEST(an_unused_reservation_leaves_no_trace)
{
    struct item *it;

    expect_ok(store_reserve(s, k(), 0, 0, 10, NOW, &it));
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 1);
    ck_assert_uint_eq(class_of(s, 1, NOW).requested_bytes, 48 + 8 + 1 + 1 + 7 + 10 + 2);
    store_release(s, it);
    assert_empty(s);
    ck_assert_uint_eq(totals_of(s).count.total_items, 0);
}
