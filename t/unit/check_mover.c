/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Pages move between classes and the pool, and what is in them stays what it was.
 */
#include "check_store.h"

#define BIG 70000u /* class 31, 12 a page */
#define PER_PAGE 12u
#define BIG_CLASS 31
#define CHUNK_MAX 16384u
#define ALL_CHUNKS 100000u

static struct store_conf
move_conf(uint64_t limit_bytes)
{
    struct store_conf conf = default_conf(limit_bytes);

    conf.can_reassign = true;
    return conf;
}

static void
put_big(struct store *s, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        char key[16];

        snprintf(key, sizeof(key), "big%u", i);
        ck_assert_int_eq(put_sized(s, key, BIG, STORE_NEVER, NOW), STORE_OK);
    }
}

static unsigned
count_big(struct store *s, unsigned from, unsigned to)
{
    unsigned there = 0;

    for (unsigned i = from; i < to; i++) {
        char key[16];

        snprintf(key, sizeof(key), "big%u", i);
        there += is_there(s, key, NOW);
    }
    return there;
}

static void
delete_big(struct store *s, unsigned from, unsigned to)
{
    struct store_result result;

    for (unsigned i = from; i < to; i++) {
        char key[16];

        snprintf(key, sizeof(key), "big%u", i);
        ck_assert_int_eq(store_delete(s, key_of(key), NULL, NOW, &result), STORE_OK);
    }
}

/* Steps until the page has moved; fails when it does not. */
static void
move_through(struct store *s)
{
    for (unsigned i = 0; i < 10000; i++) {
        if (store_move_step(s, 5, NOW) == STORE_MOVE_IDLE) {
            audit_store(s);
            return;
        }
    }
    ck_abort_msg("the page does not move");
}

START_TEST(says_why_it_can_not_move)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);
    int last = (int)store_class_count(s);

    ck_assert_int_eq(store_move_page(s, 1, 1), STORE_MOVE_SAME);
    ck_assert_int_eq(store_move_page(s, 0, 0), STORE_MOVE_SAME);
    ck_assert_int_eq(store_move_page(s, last + 1, 1), STORE_MOVE_BAD_CLASS);
    ck_assert_int_eq(store_move_page(s, 1, last + 1), STORE_MOVE_BAD_CLASS);
    ck_assert_int_eq(store_move_page(s, -5, 70), STORE_MOVE_BAD_CLASS);
    ck_assert_int_eq(store_move_page(s, -1, 70), STORE_MOVE_BAD_CLASS);
    ck_assert_int_eq(store_move_page(s, 0, 1), STORE_MOVE_BAD_CLASS);
    ck_assert_int_eq(store_move_page(s, 2, last), STORE_MOVE_NO_SPARE);
    ck_assert_int_eq(store_move_page(s, -1, 0), STORE_MOVE_NO_SPARE);
    ck_assert_int_eq(store_move_step(s, 1, NOW), STORE_MOVE_IDLE);
    put_big(s, 0, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, -1, 1), STORE_MOVE_OK);
    ck_assert(totals_of(s).is_moving);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 1), STORE_MOVE_BUSY);
    ck_assert_int_eq(store_move_page(s, 99, 99), STORE_MOVE_BUSY);
    store_destroy(&s);
    conf.can_reassign = false;
    s = open_store(&conf);
    ck_assert_int_eq(store_move_page(s, 1, 2), STORE_MOVE_OFF);
    store_destroy(&s);
}
END_TEST

START_TEST(rescues_what_is_in_the_page)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);
    struct store_result before;
    struct store_totals t;
    struct item *it;

    ck_assert_int_eq(
        put_full(s, STORE_SET, key_of("canary"), "chirp", 5, 7, 500, 0, NOW, &before),
        STORE_OK);
    ck_assert(is_there(s, "canary", NOW)); /* fetched */
    put_big(s, 0, 3 * PER_PAGE);
    delete_big(s, PER_PAGE, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 5), STORE_MOVE_OK);
    move_through(s);
    t = totals_of(s);
    ck_assert_uint_eq(t.move_rescues, PER_PAGE);
    ck_assert_uint_eq(t.pages_moved, 1);
    ck_assert(!t.is_moving);
    ck_assert_uint_eq(t.evictions + t.move_evictions_nomem, 0);
    ck_assert_uint_eq(count_big(s, 0, PER_PAGE), PER_PAGE);
    ck_assert_uint_eq(count_big(s, 2 * PER_PAGE, 3 * PER_PAGE), PER_PAGE);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).total_pages, 2);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).free_chunks, 0);
    ck_assert_uint_eq(class_of(s, 5, NOW).total_pages, 1);
    ck_assert_uint_eq(class_of(s, 5, NOW).free_chunks,
                      class_of(s, 5, NOW).chunks_per_page);
    /* The canary moves, too, with all that is known about it. */
    for (unsigned i = 0; class_of(s, 1, NOW).total_pages < 2; i++) {
        char key[16];

        snprintf(key, sizeof(key), "small%u", i);
        ck_assert_int_eq(put_sized(s, key, 1, STORE_NEVER, NOW), STORE_OK);
    }
    ck_assert_int_eq(store_move_page(s, 1, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    ck_assert_int_eq(store_get(s, key_of("canary"), NOW, &it), STORE_OK);
    ck_assert_uint_eq(item_cas(it), before.cas);
    ck_assert_uint_eq(item_flags(it), 7);
    ck_assert_uint_eq(item_expires(it), 500);
    ck_assert_uint_eq(item_accessed(it), NOW);
    ck_assert(item_was_fetched(it));
    store_release(s, it);
    ck_assert(has(s, "canary", "chirp", NOW));
    store_destroy(&s);
}
END_TEST

START_TEST(keeps_the_order_of_use)
{
    struct store_conf conf = move_conf(3 * MIB);
    struct store *s = open_store(&conf);

    put_big(s, 0, 3 * PER_PAGE);
    delete_big(s, 2 * PER_PAGE, 3 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    put_big(s, 100, 100 + PER_PAGE); /* takes the pool's page */
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    ck_assert_uint_eq(totals_of(s).evictions, 0);
    put_big(s, 200, 203);
    ck_assert_uint_eq(totals_of(s).evictions, 3);
    ck_assert_uint_eq(count_big(s, 0, 3), 0);
    ck_assert_uint_eq(count_big(s, 3, 2 * PER_PAGE), 2 * PER_PAGE - 3);
    store_destroy(&s);
}
END_TEST

START_TEST(evicts_when_there_is_nowhere_to_go)
{
    struct store_conf conf = move_conf(2 * MIB);
    struct store *s = open_store(&conf);
    struct store_totals t;

    put_big(s, 0, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    t = totals_of(s);
    ck_assert_uint_eq(t.move_evictions_nomem, PER_PAGE);
    ck_assert_uint_eq(t.evictions, 0);
    ck_assert_uint_eq(t.pool_pages, 1);
    ck_assert_uint_eq(count_big(s, 0, 2 * PER_PAGE), PER_PAGE);
    ck_assert_uint_eq(count_big(s, PER_PAGE, 2 * PER_PAGE), PER_PAGE);
    store_destroy(&s);
}
END_TEST

/* All victims are older than the rest of the class, and lie in the page that leaves. */
START_TEST(stores_find_room_beside_the_page)
{
    struct store_conf conf = move_conf(3 * MIB);

    conf.lru =
        (struct store_lru_conf){.is_segmented = _i == 1, .hot_pct = 20, .warm_pct = 40};
    struct store *s = open_store(&conf);
    put_big(s, 0, 3 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 5), STORE_MOVE_OK);
    put_big(s, 3 * PER_PAGE, 3 * PER_PAGE + 2);
    ck_assert_uint_eq(totals_of(s).evictions, PER_PAGE + 2);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).outofmemory, 0);
    move_through(s);
    ck_assert_uint_eq(count_big(s, PER_PAGE + 2, 3 * PER_PAGE + 2), 2 * PER_PAGE);
    store_destroy(&s);
}
END_TEST

START_TEST(makes_room_at_the_tail_when_it_keeps_pages)
{
    struct store_conf conf = move_conf(2 * MIB);
    struct store *s;
    struct store_totals t;

    conf.keeps_pages_when_full = true;
    s = open_store(&conf);
    put_big(s, 0, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    t = totals_of(s);
    ck_assert_uint_eq(t.move_evictions_nomem, 0);
    ck_assert_uint_gt(t.move_busy_nomem, 1);
    ck_assert_uint_gt(t.evictions, 10);
    ck_assert_uint_eq(t.curr_items, 2 * PER_PAGE - t.evictions);
    store_destroy(&s);
}
END_TEST

/* What is in the page can not be evicted, what could be is in use: no reason to try at once,
 * and again and again. */
START_TEST(waits_for_those_who_use_what_could_make_room)
{
    struct store_conf conf = move_conf(2 * MIB);
    struct store_result result;
    struct item *held[PER_PAGE];
    struct store *s;
    char key[16];

    conf.keeps_pages_when_full = true;
    conf.lru = (struct store_lru_conf){.is_segmented = true, .temp_ttl = 60};
    s = open_store(&conf);
    for (unsigned i = 0; i < PER_PAGE; i++) {
        snprintf(key, sizeof(key), "big%u", i);
        ck_assert_int_eq(put_sized(s, key, BIG, NOW + 50, NOW), STORE_OK);
    }
    put_big(s, PER_PAGE, 2 * PER_PAGE);
    for (unsigned i = 0; i < PER_PAGE; i++) {
        snprintf(key, sizeof(key), "big%u", PER_PAGE + i);
        ck_assert_int_eq(store_get(s, key_of(key), NOW, &held[i]), STORE_OK);
    }
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < 50; i++) {
        (void)store_move_step(s, ALL_CHUNKS, NOW);
    }
    ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WAITING);
    for (unsigned i = 0; i < PER_PAGE; i++) {
        store_release(s, held[i]);
    }
    move_through(s);
    ck_assert_uint_eq(count_big(s, 0, PER_PAGE), PER_PAGE);
    snprintf(key, sizeof(key), "big0");
    ck_assert_int_eq(store_delete(s, key_of(key), NULL, NOW, &result), STORE_OK);
    store_destroy(&s);
}
END_TEST

START_TEST(waits_before_it_evicts_below_the_limit)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s;

    conf.keeps_pages_when_full = true;
    s = open_store(&conf);
    put_big(s, 0, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    for (unsigned round = 0; round < 5000; round++) {
        ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WAITING);
    }
    ck_assert_uint_eq(totals_of(s).evictions, 0);
    move_through(s);
    ck_assert_uint_gt(totals_of(s).evictions, 0);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    store_destroy(&s);
}
END_TEST

static unsigned moves_told, fails_told;

static void
note_move(void *ctx, const struct store_event *event)
{
    (void)ctx;
    if (event->kind == STORE_EVENT_PAGE_MOVE) {
        *(event->has_failed ? &fails_told : &moves_told) += 1;
    }
}

START_TEST(an_eviction_asks_for_a_page)
{
    struct store_conf conf = move_conf(4 * MIB);
    struct store_automove level2 = {.level = 2, .ratio = 0.8, .window = 10};
    struct store *s;

    conf.on_event = note_move;
    s = open_store(&conf);
    ck_assert(!store_automove_evicted(s));
    store_set_automove(s, &level2);
    put_big(s, 0, 3 * PER_PAGE);
    ck_assert(store_automove_evicted(s)); /* nothing was evicted: nothing happens */
    ck_assert(!totals_of(s).is_moving);
    put_big(s, 3 * PER_PAGE, 5 * PER_PAGE);
    ck_assert_int_eq(put_sized(s, "other", 20000, STORE_NEVER, NOW), STORE_OK);
    for (unsigned i = 0; i < 60; i++) { /* a page of its own, then it evicts */
        char key[16];

        snprintf(key, sizeof(key), "other%u", i);
        ck_assert_int_eq(put_sized(s, key, 20000, STORE_NEVER, NOW), STORE_OK);
    }
    ck_assert(store_automove_evicted(s));
    ck_assert(totals_of(s).is_moving);
    ck_assert_uint_eq(moves_told, 1);
    ck_assert_int_eq(put_sized(s, "more", 20000, STORE_NEVER, NOW), STORE_OK);
    ck_assert(store_automove_evicted(s)); /* while a page is on its way */
    ck_assert_uint_eq(fails_told, 1);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).pages_moved, 1);
    ck_assert_uint_eq(class_of(s, 25, NOW).total_pages, 2);
    store_destroy(&s);
}
END_TEST

START_TEST(waits_for_those_who_use_an_item)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);
    struct store_result result;
    struct store_totals t;
    struct item *read;
    struct item *written;

    put_big(s, 0, 3 * PER_PAGE);
    delete_big(s, PER_PAGE, 3 * PER_PAGE);
    delete_big(s, 0, 1);
    ck_assert_int_eq(
        store_reserve(s, key_of("written"), 0, STORE_NEVER, BIG, NOW, &written),
        STORE_OK);
    ck_assert_int_eq(store_get(s, key_of("big2"), NOW, &read), STORE_OK);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WORKING);
    ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WAITING);
    t = totals_of(s);
    ck_assert_uint_eq(t.move_busy_items, 4);
    ck_assert_uint_eq(t.move_rescues, PER_PAGE - 2);
    ck_assert_uint_eq(t.pages_moved, 0);
    ck_assert_str_eq(t.move_last_busy, "busy_floating");
    ck_assert_int_eq(store_delete(s, key_of("big2"), NULL, NOW, &result), STORE_OK);
    (void)store_move_step(s, ALL_CHUNKS, NOW);
    store_release(s, written);
    (void)store_move_step(s, ALL_CHUNKS, NOW);
    ck_assert_str_eq(totals_of(s).move_last_busy, "busy_floating");
    store_release(s, read);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    store_destroy(&s);
}
END_TEST

START_TEST(leaves_a_locked_item_alone)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);

    put_big(s, 0, 3 * PER_PAGE);
    delete_big(s, PER_PAGE, 2 * PER_PAGE);
    store_debug_lock(s, key_of("big1"), true);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < 600; i++) {
        ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
    }
    ck_assert_uint_gt(totals_of(s).move_busy_items, 500);
    ck_assert_str_eq(totals_of(s).move_last_busy, "locked");
    store_debug_lock(s, key_of("big1"), false);
    move_through(s);
    ck_assert_uint_eq(count_big(s, 0, PER_PAGE), PER_PAGE);
    store_destroy(&s);
}
END_TEST

START_TEST(drops_what_has_expired)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);

    put_big(s, 0, 2 * PER_PAGE);
    store_flush(s, NOW, NOW);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).move_rescues, 0);
    ck_assert_uint_eq(totals_of(s).move_evictions_nomem, 0);
    ck_assert_uint_eq(totals_of(s).curr_items, PER_PAGE);
    store_destroy(&s);
}
END_TEST

/* Allocations that find the page's own free chunks on the list pass them over. */
START_TEST(passes_over_its_own_free_chunks)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);

    put_big(s, 0, 2 * PER_PAGE);
    delete_big(s, 0, PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    put_big(s, 100, 101);
    ck_assert_uint_eq(totals_of(s).move_inline_reclaim, PER_PAGE);
    ck_assert_int_eq(store_move_step(s, 1, NOW), STORE_MOVE_IDLE);
    ck_assert_uint_eq(totals_of(s).pages_moved, 1);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).total_pages, 2);
    store_destroy(&s);
}
END_TEST

/* A page that came from elsewhere and has hardly been used goes on. */
START_TEST(moves_a_page_that_is_not_cut)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);

    put_big(s, 0, 4 * PER_PAGE);
    delete_big(s, 0, 3 * PER_PAGE);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(store_move_page(s, BIG_CLASS, 5), STORE_MOVE_OK);
        move_through(s);
    }
    ck_assert_uint_eq(class_of(s, 5, NOW).total_pages, 2);
    ck_assert_uint_eq(class_of(s, 5, NOW).used_chunks, 0);
    ck_assert_int_eq(put_sized(s, "one", 150, STORE_NEVER, NOW), STORE_OK);
    ck_assert_uint_eq(class_of(s, 5, NOW).used_chunks, 1);
    ck_assert_int_eq(store_move_page(s, 5, BIG_CLASS), STORE_MOVE_OK);
    move_through(s);
    ck_assert(is_there(s, "one", NOW));
    ck_assert_uint_eq(class_of(s, 5, NOW).total_pages, 1);
    ck_assert_uint_eq(class_of(s, 5, NOW).used_chunks, 1);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).total_pages, 3);
    store_destroy(&s);
}
END_TEST

START_TEST(gives_pages_back_above_the_limit)
{
    struct store_conf conf = move_conf(8 * MIB);
    struct store *s = open_store(&conf);

    put_big(s, 0, 6 * PER_PAGE);
    delete_big(s, 0, 5 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).pool_pages, 2);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 6 * MIB);
    ck_assert(store_set_limit(s, 5 * MIB));
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 5 * MIB);
    ck_assert(store_set_limit(s, 2 * MIB));
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 4 * MIB);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 3 * MIB);
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    store_destroy(&s);
}
END_TEST

/* ---- chains --------------------------------------------------------------------------- */

static void
put_chain(struct store *s, const char *key, size_t len, unsigned salt)
{
    struct store_result result;
    char *value = malloc(len);

    for (size_t i = 0; i < len; i++) {
        value[i] = (char)('a' + (i * 7 + salt + i / 1000) % 26);
    }
    ck_assert_int_eq(
        put_full(s, STORE_SET, key_of(key), value, len, 0, STORE_NEVER, 0, NOW, &result),
        STORE_OK);
    free(value);
}

static bool
has_chain(struct store *s, const char *key, size_t len, unsigned salt)
{
    struct item *it;
    char *value;
    bool is_same;

    if (store_get(s, key_of(key), NOW, &it) != STORE_OK) {
        return false;
    }
    value = read_item(it);
    is_same = item_value_len(it) == len;
    for (size_t i = 0; is_same && i < len; i++) {
        is_same = value[i] == (char)('a' + (i * 7 + salt + i / 1000) % 26);
    }
    free(value);
    store_release(s, it);
    return is_same;
}

/* 20 chains of 7 chunks; the class of the largest chunk has three pages, a third of it free. */
static struct store *
open_chained(void)
{
    struct store_conf conf = move_conf(16 * MIB);
    struct store *s;

    conf.chunk_max = CHUNK_MAX;
    s = open_store(&conf);
    for (unsigned i = 0; i < 26; i++) {
        char key[16];

        snprintf(key, sizeof(key), "chain%u", i);
        put_chain(s, key, 100000 + i, i);
    }
    for (unsigned i = 1; i < 26; i += 3) {
        char key[16];
        struct store_result result;

        snprintf(key, sizeof(key), "chain%u", i);
        ck_assert_int_eq(store_delete(s, key_of(key), NULL, NOW, &result), STORE_OK);
    }
    return s;
}

static void
assert_chains(struct store *s)
{
    for (unsigned i = 0; i < 26; i++) {
        char key[16];

        snprintf(key, sizeof(key), "chain%u", i);
        ck_assert(has_chain(s, key, 100000 + i, i) == (i % 3 != 1));
    }
}

START_TEST(rescues_chunks_of_chains)
{
    struct store *s = open_chained();
    int largest = (int)store_class_count(s);
    uint64_t requested = class_of(s, (unsigned)largest, NOW).requested_bytes;

    ck_assert_int_eq(store_move_page(s, largest, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_gt(totals_of(s).move_chunk_rescues, 30);
    ck_assert_uint_eq(totals_of(s).move_evictions_nomem, 0);
    ck_assert_uint_eq(class_of(s, (unsigned)largest, NOW).requested_bytes, requested);
    assert_chains(s);
    store_destroy(&s);
}
END_TEST

START_TEST(rescues_heads_of_chains)
{
    struct store *s = open_chained();
    unsigned head_class = 2; /* 48 + 8 + key + pad + 48 */

    ck_assert_uint_gt(class_of(s, head_class, NOW).used_chunks, 10);
    for (unsigned i = 0; class_of(s, head_class, NOW).total_pages < 2; i++) {
        char key[16];

        snprintf(key, sizeof(key), "small%u", i);
        ck_assert_int_eq(put_sized(s, key, 40, STORE_NEVER, NOW), STORE_OK);
    }
    ck_assert_int_eq(store_move_page(s, (int)head_class, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_gt(totals_of(s).move_rescues, 17);
    assert_chains(s);
    store_flush(s, NOW, NOW);

    store_destroy(&s);
}
END_TEST

START_TEST(deletes_a_chain_that_is_always_in_use)
{
    struct store *s = open_chained();
    int largest = (int)store_class_count(s);
    struct item *it;

    ck_assert_int_eq(store_get(s, key_of("chain0"), NOW, &it), STORE_OK);
    ck_assert_int_eq(store_move_page(s, largest, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
        ck_assert_uint_eq(totals_of(s).move_busy_deletes, 0);
    }
    ck_assert_str_eq(totals_of(s).move_last_busy, "busy_floating");
    ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
    ck_assert_uint_eq(totals_of(s).move_busy_deletes, 1);
    store_release(s, it);
    move_through(s);
    ck_assert(!is_there(s, "chain0", NOW));
    ck_assert(has_chain(s, "chain2", 100002, 2));
    store_destroy(&s);
}
END_TEST

/* ---- preallocation -------------------------------------------------------------------- */

START_TEST(preallocates_everything)
{
    struct store_conf conf = move_conf(64 * MIB);
    struct store *s;
    char err[128] = "";

    conf.preallocates = true;
    s = open_store(&conf);
    ck_assert_uint_eq(totals_of(s).active_classes, store_class_count(s));
    ck_assert_uint_eq(totals_of(s).malloced_bytes, store_class_count(s) * (uint64_t)MIB);
    ck_assert(!store_set_limit(s, 8 * MIB));
    put_big(s, 0, 30 * PER_PAGE);
    ck_assert_uint_gt(totals_of(s).evictions, 0);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 64 * MIB);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    move_through(s);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    store_destroy(&s);
    conf.limit_bytes = 8 * MIB;
    ck_assert_ptr_null(store_create(&conf, err, sizeof(err)));
    ck_assert_str_ne(err, "");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("mover");
    TCase *tc = tcase_create("mover");

    tcase_add_test(tc, says_why_it_can_not_move);
    tcase_add_test(tc, rescues_what_is_in_the_page);
    tcase_add_test(tc, keeps_the_order_of_use);
    tcase_add_test(tc, evicts_when_there_is_nowhere_to_go);
    tcase_add_loop_test(tc, stores_find_room_beside_the_page, 0, 2);
    tcase_add_test(tc, makes_room_at_the_tail_when_it_keeps_pages);
    tcase_add_test(tc, waits_for_those_who_use_what_could_make_room);
    tcase_add_test(tc, waits_before_it_evicts_below_the_limit);
    tcase_add_test(tc, an_eviction_asks_for_a_page);
    tcase_add_test(tc, waits_for_those_who_use_an_item);
    tcase_add_test(tc, leaves_a_locked_item_alone);
    tcase_add_test(tc, drops_what_has_expired);
    tcase_add_test(tc, passes_over_its_own_free_chunks);
    tcase_add_test(tc, moves_a_page_that_is_not_cut);
    tcase_add_test(tc, gives_pages_back_above_the_limit);
    tcase_add_test(tc, rescues_chunks_of_chains);
    tcase_add_test(tc, rescues_heads_of_chains);
    tcase_add_test(tc, deletes_a_chain_that_is_always_in_use);
    tcase_add_test(tc, preallocates_everything);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
