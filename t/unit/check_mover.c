/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Pages move between classes and the pool, and what is in them stays what it was.
 */
#include "fixture_store.h"

#define BIG 70000u /* class 31, 12 a page */
#define PER_PAGE 12u
#define BIG_CLASS 31
#define CHUNK_MAX 16384u
#define ALL_CHUNKS 100000u

static void
set_up(void)
{
    conf = default_conf(8 * MIB);
    conf.can_reassign = true;
    s = open_store(&conf);
}

static void
put_big(unsigned from, unsigned to)
{
    put_range("big", from, to, BIG, STORE_NEVER, NOW);
}

static unsigned
count_big(unsigned from, unsigned to)
{
    return count_range("big", from, to, NOW);
}

static void
drop_big(unsigned from, unsigned to)
{
    drop_range("big", from, to, NOW);
}

/* Steps until the page has moved; fails when it does not. */
static void
move_through(void)
{
    for (unsigned i = 0; i < 10000; i++) {
        if (store_move_step(s, 5, NOW) == STORE_MOVE_IDLE) {
            audit_store(s);
            return;
        }
    }
    ck_abort_msg("the page does not move");
}

static void
move(int from, int to)
{
    ck_assert_int_eq(store_move_page(s, from, to), STORE_MOVE_OK);
    move_through();
}

FIXTURE(set_up, tear_down_store);

TEST(says_why_it_can_not_move)
{
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
    put_big(0, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, -1, 1), STORE_MOVE_OK);
    ck_assert(totals_of(s).is_moving);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 1), STORE_MOVE_BUSY);
    ck_assert_int_eq(store_move_page(s, 99, 99), STORE_MOVE_BUSY);
    conf.can_reassign = false;
    reopen();
    ck_assert_int_eq(store_move_page(s, 1, 2), STORE_MOVE_OFF);
}

TEST(rescues_what_is_in_the_page)
{
    struct store_result before;

    expect_ok(
        put_full(s, STORE_SET, key_of("canary"), "chirp", 5, 7, 500, 0, NOW, &before));
    ck_assert(is_there(s, "canary", NOW)); /* fetched */
    put_big(0, 3 * PER_PAGE);
    drop_big(PER_PAGE, 2 * PER_PAGE);
    move(BIG_CLASS, 5);
    struct store_totals t = totals_of(s);
    ck_assert_uint_eq(t.move_rescues, PER_PAGE);
    ck_assert_uint_eq(t.pages_moved, 1);
    ck_assert(!t.is_moving);
    ck_assert_uint_eq(t.count.evicted + t.move_evictions_nomem, 0);
    ck_assert_uint_eq(count_big(0, PER_PAGE), PER_PAGE);
    ck_assert_uint_eq(count_big(2 * PER_PAGE, 3 * PER_PAGE), PER_PAGE);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).total_pages, 2);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).free_chunks, 0);
    ck_assert_uint_eq(class_of(s, 5, NOW).total_pages, 1);
    ck_assert_uint_eq(class_of(s, 5, NOW).free_chunks,
                      class_of(s, 5, NOW).chunks_per_page);
    /* The canary moves, too, with all that is known about it. */
    for (unsigned i = 0; class_of(s, 1, NOW).total_pages < 2; i++) {
        expect_ok(put_sized(s, numbered("small", i), 1, STORE_NEVER, NOW));
    }
    move(1, 0);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    struct item *it = hold("canary", NOW);
    ck_assert_uint_eq(item_cas(it), before.cas);
    ck_assert_uint_eq(item_flags(it), 7);
    ck_assert_uint_eq(item_expires(it), 500);
    ck_assert_uint_eq(item_accessed(it), NOW);
    ck_assert(item_was_fetched(it));
    store_release(s, it);
    ck_assert(has(s, "canary", "chirp", NOW));
}

TEST(keeps_the_order_of_use)
{
    reopen_with(3);

    put_big(0, 3 * PER_PAGE);
    drop_big(2 * PER_PAGE, 3 * PER_PAGE);
    move(BIG_CLASS, 0);
    put_big(100, 100 + PER_PAGE); /* takes the pool's page */
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
    put_big(200, 203);
    ck_assert_uint_eq(totals_of(s).count.evicted, 3);
    ck_assert_uint_eq(count_big(0, 3), 0);
    ck_assert_uint_eq(count_big(3, 2 * PER_PAGE), 2 * PER_PAGE - 3);
}

TEST(evicts_when_there_is_nowhere_to_go)
{
    reopen_with(2);

    put_big(0, 2 * PER_PAGE);
    move(BIG_CLASS, 0);
    struct store_totals t = totals_of(s);
    ck_assert_uint_eq(t.move_evictions_nomem, PER_PAGE);
    ck_assert_uint_eq(t.count.evicted, 0);
    ck_assert_uint_eq(t.pool_pages, 1);
    ck_assert_uint_eq(count_big(0, 2 * PER_PAGE), PER_PAGE);
    ck_assert_uint_eq(count_big(PER_PAGE, 2 * PER_PAGE), PER_PAGE);
}

/* All victims are older than the rest of the class, and lie in the page that leaves. */
TEST_LOOP(stores_find_room_beside_the_page, 2)
{
    conf.lru = (struct store_lru_conf){
        .policy = (enum store_lru_policy)_i, .hot_pct = 20, .warm_pct = 40};
    reopen_with(3);
    put_big(0, 3 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 5), STORE_MOVE_OK);
    put_big(3 * PER_PAGE, 3 * PER_PAGE + 2);
    ck_assert_uint_eq(totals_of(s).count.evicted, PER_PAGE + 2);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).count.outofmemory, 0);
    move_through();
    ck_assert_uint_eq(count_big(PER_PAGE + 2, 3 * PER_PAGE + 2), 2 * PER_PAGE);
}

/* However many of them there are, one store lets few go. */
TEST_LOOP(a_store_beside_a_full_page_has_a_bound, 3)
{
    enum { LENGTH = 64, STORES = 200 };

    conf.lru = (struct store_lru_conf){
        .policy = (enum store_lru_policy)_i, .hot_pct = 20, .warm_pct = 40};
    conf.keeps_pages_when_full = true;
    reopen_with(3);
    unsigned class_id = 0, filled = 0;
    uint64_t rounds = 0;

    while (totals_of(s).count.evicted == 0) {
        expect_ok(put_sized(s, numbered("small", filled++), LENGTH, STORE_NEVER, NOW));
    }
    struct item *it = hold(numbered("small", filled - 1), NOW);
    class_id = item_class(it);
    store_release(s, it);
    ck_assert_int_eq(store_move_page(s, (int)class_id, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < STORES; i++) {
        uint64_t before = class_of(s, class_id, NOW).direct_reclaims;
        expect_ok(put_sized(s, numbered("new", i), LENGTH, STORE_NEVER, NOW));
        uint64_t more = class_of(s, class_id, NOW).direct_reclaims - before;
        rounds = more > rounds ? more : rounds;
        audit_store(s);
    }
    ck_assert_uint_ge(rounds, LRU_ROUNDS);
    ck_assert_uint_le(rounds, LRU_ROUNDS + LRU_ATTEMPTS);
    ck_assert_uint_eq(class_of(s, class_id, NOW).count.outofmemory, 0);
    move_through();
    ck_assert_uint_eq(count_range("new", 0, STORES, NOW), STORES);
}

TEST(makes_room_at_the_tail_when_it_keeps_pages)
{
    conf.keeps_pages_when_full = true;
    reopen_with(2);
    put_big(0, 2 * PER_PAGE);
    move(BIG_CLASS, 0);
    struct store_totals t = totals_of(s);
    ck_assert_uint_eq(t.move_evictions_nomem, 0);
    ck_assert_uint_gt(t.move_busy_nomem, 1);
    ck_assert_uint_gt(t.count.evicted, 10);
    ck_assert_uint_eq(t.curr_items, 2 * PER_PAGE - t.count.evicted);
}

/* What is in the page can not be evicted, what could be is in use: no reason to try at once,
 * and again and again. */
TEST(waits_for_those_who_use_what_could_make_room)
{
    struct item *held[PER_PAGE];
    conf.keeps_pages_when_full = true;
    conf.lru = (struct store_lru_conf){.policy = STORE_LRU_SEGMENTED, .temp_ttl = 60};
    reopen_with(2);
    put_range("big", 0, PER_PAGE, BIG, NOW + 50, NOW);
    put_big(PER_PAGE, 2 * PER_PAGE);
    for (unsigned i = 0; i < PER_PAGE; i++) {
        held[i] = hold(numbered("big", PER_PAGE + i), NOW);
    }
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < 50; i++) {
        (void)store_move_step(s, ALL_CHUNKS, NOW);
    }
    ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WAITING);
    for (unsigned i = 0; i < PER_PAGE; i++) {
        store_release(s, held[i]);
    }
    move_through();
    ck_assert_uint_eq(count_big(0, PER_PAGE), PER_PAGE);
    drop("big0", NOW);
}

TEST(waits_before_it_evicts_below_the_limit)
{
    conf.keeps_pages_when_full = true;
    reopen();
    put_big(0, 2 * PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    for (unsigned round = 0; round < 5000; round++) {
        ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WAITING);
    }
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
    move_through();
    ck_assert_uint_gt(totals_of(s).count.evicted, 0);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
}

static unsigned moves_told, fails_told;

static void
note_move(void *ctx, const struct store_event *event)
{
    (void)ctx;
    if (event->kind == STORE_EVENT_PAGE_MOVE) {
        *(event->has_failed ? &fails_told : &moves_told) += 1;
    }
}

TEST(an_eviction_asks_for_a_page)
{
    struct store_automove level2 = {.level = 2, .ratio = 0.8, .window = 10};

    conf.on_event = note_move;
    reopen_with(4);
    ck_assert(!store_automove_evicted(s));
    store_set_automove(s, &level2);
    put_big(0, 3 * PER_PAGE);
    ck_assert(store_automove_evicted(s)); /* nothing was evicted: nothing happens */
    ck_assert(!totals_of(s).is_moving);
    put_big(3 * PER_PAGE, 5 * PER_PAGE);
    expect_ok(put_sized(s, "other", 20000, STORE_NEVER, NOW));
    put_range("other", 0, 60, 20000, STORE_NEVER,
              NOW); /* a page of its own, then it evicts */
    ck_assert(store_automove_evicted(s));
    ck_assert(totals_of(s).is_moving);
    ck_assert_uint_eq(moves_told, 1);
    expect_ok(put_sized(s, "more", 20000, STORE_NEVER, NOW));
    ck_assert(store_automove_evicted(s)); /* while a page is on its way */
    ck_assert_uint_eq(fails_told, 1);
    move_through();
    ck_assert_uint_eq(totals_of(s).pages_moved, 1);
    ck_assert_uint_eq(class_of(s, 25, NOW).total_pages, 2);
}

TEST(waits_for_those_who_use_an_item)
{
    struct item *written;

    put_big(0, 3 * PER_PAGE);
    drop_big(PER_PAGE, 3 * PER_PAGE);
    drop_big(0, 1);
    expect_ok(store_reserve(s, key_of("written"), 0, STORE_NEVER, BIG, NOW, &written));
    struct item *read = hold("big2", NOW);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WORKING);
    ck_assert_int_eq(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_WAITING);
    struct store_totals t = totals_of(s);
    ck_assert_uint_eq(t.move_busy_items, 4);
    ck_assert_uint_eq(t.move_rescues, PER_PAGE - 2);
    ck_assert_uint_eq(t.pages_moved, 0);
    ck_assert_str_eq(t.move_last_busy, "busy_floating");
    drop("big2", NOW);
    (void)store_move_step(s, ALL_CHUNKS, NOW);
    store_release(s, written);
    (void)store_move_step(s, ALL_CHUNKS, NOW);
    ck_assert_str_eq(totals_of(s).move_last_busy, "busy_floating");
    store_release(s, read);
    move_through();
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
}

TEST(leaves_a_locked_item_alone)
{
    put_big(0, 3 * PER_PAGE);
    drop_big(PER_PAGE, 2 * PER_PAGE);
    store_debug_lock(s, key_of("big1"), true);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < 600; i++) {
        ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
    }
    ck_assert_uint_gt(totals_of(s).move_busy_items, 500);
    ck_assert_str_eq(totals_of(s).move_last_busy, "locked");
    store_debug_lock(s, key_of("big1"), false);
    move_through();
    ck_assert_uint_eq(count_big(0, PER_PAGE), PER_PAGE);
}

TEST(drops_what_has_expired)
{
    put_big(0, 2 * PER_PAGE);
    store_flush(s, 0, NOW);
    move(BIG_CLASS, 0);
    ck_assert_uint_eq(totals_of(s).move_rescues, 0);
    ck_assert_uint_eq(totals_of(s).move_evictions_nomem, 0);
    ck_assert_uint_eq(totals_of(s).curr_items, PER_PAGE);
}

/* Allocations that find the page's own free chunks on the list pass them over. */
TEST(passes_over_its_own_free_chunks)
{
    put_big(0, 2 * PER_PAGE);
    drop_big(0, PER_PAGE);
    ck_assert_int_eq(store_move_page(s, BIG_CLASS, 0), STORE_MOVE_OK);
    put_big(100, 101);
    ck_assert_uint_eq(totals_of(s).move_inline_reclaim, PER_PAGE);
    ck_assert_int_eq(store_move_step(s, 1, NOW), STORE_MOVE_IDLE);
    ck_assert_uint_eq(totals_of(s).pages_moved, 1);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).total_pages, 2);
}

/* A page that came from elsewhere and has hardly been used goes on. */
TEST(moves_a_page_that_is_not_cut)
{
    put_big(0, 4 * PER_PAGE);
    drop_big(0, 3 * PER_PAGE);
    move(BIG_CLASS, 5);
    move(BIG_CLASS, 5);
    ck_assert_uint_eq(class_of(s, 5, NOW).total_pages, 2);
    ck_assert_uint_eq(class_of(s, 5, NOW).used_chunks, 0);
    expect_ok(put_sized(s, "one", 150, STORE_NEVER, NOW));
    ck_assert_uint_eq(class_of(s, 5, NOW).used_chunks, 1);
    move(5, BIG_CLASS);
    ck_assert(is_there(s, "one", NOW));
    ck_assert_uint_eq(class_of(s, 5, NOW).total_pages, 1);
    ck_assert_uint_eq(class_of(s, 5, NOW).used_chunks, 1);
    ck_assert_uint_eq(class_of(s, BIG_CLASS, NOW).total_pages, 3);
}

TEST(gives_pages_back_above_the_limit)
{
    put_big(0, 6 * PER_PAGE);
    drop_big(0, 5 * PER_PAGE);
    move(BIG_CLASS, 0);
    move(BIG_CLASS, 0);
    ck_assert_uint_eq(totals_of(s).pool_pages, 2);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 6 * MIB);
    ck_assert(store_set_limit(s, 5 * MIB));
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 5 * MIB);
    ck_assert(store_set_limit(s, 2 * MIB));
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 4 * MIB);
    move(BIG_CLASS, 0);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 3 * MIB);
    ck_assert_uint_eq(totals_of(s).pool_pages, 0);
    /* Their addresses are used again. */
    ck_assert(store_set_limit(s, 8 * MIB));
    ck_assert_ptr_nonnull(s->slab.pages.shelf);
    put_big(100, 100 + 5 * PER_PAGE);
    ck_assert_ptr_null(s->slab.pages.shelf);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 6 * MIB);
    ck_assert_uint_eq(count_big(100, 100 + 5 * PER_PAGE), 5 * PER_PAGE);
}

/* ---- chains --------------------------------------------------------------------------- */

static void
put_chain(const char *key, size_t len, unsigned salt)
{
    FREED char *value = malloc(len);

    for (size_t i = 0; i < len; i++) {
        value[i] = (char)('a' + (i * 7 + salt + i / 1000) % 26);
    }
    expect_ok(
        put_full(s, STORE_SET, key_of(key), value, len, 0, STORE_NEVER, 0, NOW, &r));
}

static bool
has_chain(const char *key, size_t len, unsigned salt)
{
    struct item *it;

    if (store_get(s, key_of(key), NOW, &it) != STORE_OK) {
        return false;
    }
    char *value = read_item(it);
    bool is_same = item_value_len(it) == len;
    for (size_t i = 0; is_same && i < len; i++) {
        is_same = value[i] == (char)('a' + (i * 7 + salt + i / 1000) % 26);
    }
    free(value);
    store_release(s, it);
    return is_same;
}

/* 20 chains of 7 chunks; the class of the largest chunk has three pages, a third of it free. */
static void
open_chained(void)
{
    conf.chunk_max = CHUNK_MAX;
    reopen_with(16);
    for (unsigned i = 0; i < 26; i++) {
        put_chain(numbered("chain", i), 100000 + i, i);
    }
    for (unsigned i = 1; i < 26; i += 3) {
        drop(numbered("chain", i), NOW);
    }
}

static void
assert_chains(void)
{
    for (unsigned i = 0; i < 26; i++) {
        ck_assert(has_chain(numbered("chain", i), 100000 + i, i) == (i % 3 != 1));
    }
}

TEST(rescues_chunks_of_chains)
{
    open_chained();
    int largest = (int)store_class_count(s);
    uint64_t requested = class_of(s, (unsigned)largest, NOW).requested_bytes;

    move(largest, 0);
    ck_assert_uint_gt(totals_of(s).move_chunk_rescues, 30);
    ck_assert_uint_eq(totals_of(s).move_evictions_nomem, 0);
    ck_assert_uint_eq(class_of(s, (unsigned)largest, NOW).requested_bytes, requested);
    assert_chains();
}

TEST(rescues_heads_of_chains)
{
    open_chained();
    unsigned head_class = 2; /* 48 + 8 + key + pad + 48 */

    ck_assert_uint_gt(class_of(s, head_class, NOW).used_chunks, 10);
    for (unsigned i = 0; class_of(s, head_class, NOW).total_pages < 2; i++) {
        expect_ok(put_sized(s, numbered("small", i), 40, STORE_NEVER, NOW));
    }
    move((int)head_class, 0);
    ck_assert_uint_gt(totals_of(s).move_rescues, 17);
    assert_chains();
    store_flush(s, 0, NOW);
}

/* Where there is nowhere to go the class of the page makes room, as it is the one that loses it: large
 * items whose heads are in the page are not given up, one after the other, in the hope of a head. */
TEST(evicts_of_the_class_of_the_page)
{
    conf.chunk_max = CHUNK_MAX;
    conf.keeps_pages_when_full = true;
    reopen_with(16);
    for (unsigned i = 0; i < 20; i++) {
        put_chain(numbered("chain", i), 100000 + i, i);
    }
    unsigned head_class = 2, small = 0; /* 48 + 8 + key + pad + 48 */
    while (class_of(s, head_class, NOW).total_pages < 2 ||
           class_of(s, head_class, NOW).free_chunks > 0) {
        expect_ok(put_sized(s, numbered("small", small++), 40, STORE_NEVER, NOW));
    }
    put_range("medium", 0, 2000, 9000, STORE_NEVER, NOW);
    move((int)head_class, 0);
    ck_assert_uint_eq(class_of(s, store_class_count(s), NOW).count.evicted, 0);
    ck_assert_uint_eq(class_of(s, head_class, NOW).total_pages, 1);
    ck_assert_uint_gt(count_range("small", 0, small, NOW), small / 3);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(has_chain(numbered("chain", i), 100000 + i, i));
    }
}

/* Without evictions (-M) nothing goes: the class keeps the page, and another move may begin. */
TEST(gives_up_nothing_without_evictions)
{
    conf.chunk_max = CHUNK_MAX;
    conf.keeps_pages_when_full = true;
    conf.can_evict = false;
    reopen_with(16);
    unsigned head_class = 2, n = 0, last = 0;
    for (unsigned i = 0; i < 3; i++) {
        put_chain(numbered("chain", i), 100000 + i, i);
    }
    while (put_sized(s, numbered("small", n), 40, STORE_NEVER, NOW) == STORE_OK &&
           n < 1000000) {
        n++;
    }
    while (put_sized(s, numbered("medium", last), 9000, STORE_NEVER, NOW) == STORE_OK) {
        last++;
    }
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(store_move_page(s, (int)head_class, 0), STORE_MOVE_OK);
        move_through();
        struct store_totals t = totals_of(s);
        ck_assert(!t.is_moving);
        ck_assert_uint_eq(t.pages_moved, 0);
        ck_assert_uint_eq(t.curr_items, 3 + n + last);
    }
    /* what became free meanwhile is the class's again */
    ck_assert_int_eq(store_move_page(s, (int)head_class, 0), STORE_MOVE_OK);
    (void)!store_move_step(s, ALL_CHUNKS, NOW);
    drop_range("small", 0, 10, NOW);
    move_through();
    for (unsigned i = 0; i < 10; i++) {
        expect_ok(put_sized(s, numbered("small", i), 40, STORE_NEVER, NOW));
    }
}

/* When the class has nothing else to give, what has no place goes, and nothing but that. */
TEST(gives_up_a_chain_that_has_no_place)
{
    conf.chunk_max = CHUNK_MAX;
    conf.keeps_pages_when_full = true;
    reopen_with(16);
    unsigned head_class = 2, fill = 0;
    for (unsigned i = 0; i < 3; i++) {
        put_chain(numbered("chain", i), 100000 + i, i);
    }
    while (class_of(s, head_class, NOW).total_pages < 2 ||
           class_of(s, head_class, NOW).free_chunks > 0) {
        expect_ok(put_sized(s, numbered("small", fill++), 40, STORE_NEVER, NOW));
    }
    put_range("medium", 0, 2000, 9000, STORE_NEVER, NOW);
    struct item **held = calloc(fill, sizeof *held);
    for (unsigned i = 0; i < fill; i++) { /* what is in use cannot be evicted */
        held[i] = hold(numbered("small", i), NOW);
    }
    ck_assert_int_eq(store_move_page(s, (int)head_class, 0), STORE_MOVE_OK);
    uint64_t evicted = totals_of(s).count.evicted;
    unsigned rounds = 0;
    while (rounds < 20000 && totals_of(s).move_evictions_nomem < 3) {
        ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
        rounds++;
    }
    ck_assert_uint_eq(totals_of(s).move_evictions_nomem, 3);
    ck_assert_uint_eq(totals_of(s).count.evicted - evicted, 3);
    ck_assert_uint_gt(rounds, 1000); /* it is the last resort */
    for (unsigned i = 0; i < fill; i++) {
        store_release(s, held[i]);
    }
    free(held);
    move_through();
}

TEST(deletes_a_chain_that_is_always_in_use)
{
    open_chained();
    int largest = (int)store_class_count(s);

    struct item *it = hold("chain0", NOW);
    ck_assert_int_eq(store_move_page(s, largest, 0), STORE_MOVE_OK);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
        ck_assert_uint_eq(totals_of(s).move_busy_deletes, 0);
    }
    ck_assert_str_eq(totals_of(s).move_last_busy, "busy_floating");
    ck_assert_int_ne(store_move_step(s, ALL_CHUNKS, NOW), STORE_MOVE_IDLE);
    ck_assert_uint_eq(totals_of(s).move_busy_deletes, 1);
    store_release(s, it);
    move_through();
    ck_assert(!is_there(s, "chain0", NOW));
    ck_assert(has_chain("chain2", 100002, 2));
}

/* ---- preallocation -------------------------------------------------------------------- */

TEST(preallocates_everything)
{
    char err[128] = "";

    conf.preallocates = true;
    reopen_with(64);
    ck_assert_uint_eq(totals_of(s).active_classes, store_class_count(s));
    ck_assert_uint_eq(totals_of(s).malloced_bytes, store_class_count(s) * (uint64_t)MIB);
    ck_assert(!store_set_limit(s, 8 * MIB));
    put_big(0, 30 * PER_PAGE);
    ck_assert_uint_gt(totals_of(s).count.evicted, 0);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 64 * MIB);
    move(BIG_CLASS, 0);
    ck_assert_uint_eq(totals_of(s).pool_pages, 1);
    store_destroy(&s);
    conf.limit_bytes = 8 * MIB;
    ck_assert_ptr_null(store_create(&conf, err, sizeof(err)));
    ck_assert_str_ne(err, "");
}
