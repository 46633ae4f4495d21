/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * S3-FIFO: which item leaves next, what a read changes, what ghosts bring back; and what becomes of
 * lists that another policy has left.
 */
#include "fixture_s3fifo.h"

#define HOT_PLACES (PLACES / 20)
#define MOVES 500u

static void
store_range(const char *prefix, unsigned from, unsigned to)
{
    put_range(prefix, from, to, VALUE, 0, NOW);
}

static void
read_twice(const char *prefix, unsigned from, unsigned to)
{
    ck_assert_uint_eq(count_range(prefix, from, to, NOW), to - from);
    ck_assert_uint_eq(count_range(prefix, from, to, NOW), to - from);
}

static bool
is_kept(const char *key)
{
    struct item *it = look(key);

    if (it != NULL) {
        store_release(s, it);
    }
    return it != NULL;
}

static enum store_list
list_of_key(const char *key)
{
    struct item *it = look(key);

    ck_assert_ptr_nonnull(it);
    enum store_list list = item_list(it);
    store_release(s, it);
    return list;
}

static uint64_t
listed(enum store_list list)
{
    return class_of(s, CLASS, NOW).list_number[list];
}

static void
use_policy(enum store_lru_policy policy)
{
    conf.lru.policy = policy;
    store_set_lru(s, &conf.lru);
}

/* ---- which one leaves ------------------------------------------------------------------ */

FIXTURE(set_up_s3fifo, tear_down_store);

TEST(new_items_have_a_twentieth)
{
    store_range("k", 0, PLACES);
    ck_assert_uint_eq(listed(STORE_LIST_HOT), HOT_PLACES);
    ck_assert_uint_eq(listed(STORE_LIST_COLD), PLACES - HOT_PLACES);
    store_range("n", 0, 3 * PLACES);
    ck_assert_uint_eq(totals_of(s).count.evicted, 3 * PLACES);
    ck_assert_uint_le(listed(STORE_LIST_HOT), HOT_PLACES + 1);
    ck_assert_uint_eq(listed(STORE_LIST_HOT) + listed(STORE_LIST_COLD), PLACES);
}

/* While what leaves the main queue is of no use. */
TEST(new_items_have_as_much_as_is_decided)
{
    store_range("k", 0, PLACES);
    atomic_store(&s->lru.hot_share.pct, 50);
    store_range("n", 0, PLACES);
    ck_assert_uint_ge(listed(STORE_LIST_HOT), PLACES / 2 - 1);
    ck_assert_uint_le(listed(STORE_LIST_HOT), PLACES / 2 + 1);
}

/* What evicted items say is told. */
TEST(the_share_of_new_items_learns_from_evictions)
{
    store_range("k", 0, 3 * PLACES + HOTSHARE_PERIOD);
    ck_assert_uint_gt(s->lru.hot_share.now.ghosts, 0);
    ck_assert_uint_le(s->lru.hot_share.now.ghosts, totals_of(s).count.evicted);
}

/* In the order in which they came. */
TEST(new_items_that_are_not_read_leave_in_order)
{
    store_range("k", 0, PLACES);
    read_twice("k", 0, PLACES); /* all of these may stay */
    store_range("n", 0, 4);
    ck_assert(is_there(s, "n2", NOW));
    for (unsigned i = 4; i < 40; i++) {
        bool had[40];

        for (unsigned k = 0; k < i; k++) {
            had[k] = is_kept(numbered("n", k));
        }
        store_range("n", i, i + 1);
        for (unsigned k = 1; k < i; k++) {
            ck_assert_msg(is_kept(numbered("n", k)) || !had[k] || k == 2 || !had[k - 1] ||
                              k - 1 == 2 || !is_kept(numbered("n", k - 1)),
                          "n%u left before n%u", k, k - 1);
        }
    }
    ck_assert(!is_kept("n0") && !is_kept("n1"));
    ck_assert_int_eq(list_of_key("n2"), STORE_LIST_COLD);
}

TEST(what_is_read_outlives_a_scan)
{
    store_range("k", 0, PLACES);
    read_twice("k", 0, PLACES);
    store_range("scan", 0, 20 * PLACES);
    ck_assert_uint_ge(count_kept("k", 0, PLACES), PLACES - HOT_PLACES);
    ck_assert_uint_ge(totals_of(s).count.evicted_unfetched,
                      totals_of(s).count.evicted - PLACES / 10);
}

/* Of a loop of three times as many keys as there are places, a part stays: a list in the order of
 * use would have lost each before it is asked for again. */
TEST(of_a_loop_a_part_stays)
{
    unsigned hits = 0;

    for (unsigned i = 0; i < 30 * 3 * PLACES; i++) {
        const char *key = numbered("k", i % (3 * PLACES));

        if (is_there(s, key, NOW)) {
            hits += i >= 20 * 3 * PLACES;
        } else {
            expect_ok(put_sized(s, key, VALUE, 0, NOW));
        }
    }
    ck_assert_uint_gt(hits, 10 * 3 * PLACES / 5);
}

TEST(what_was_read_comes_round_once_or_twice)
{
    store_range("k", 0, PLACES);
    const char *main_tail = "k1";
    ck_assert_int_eq(list_of_key(main_tail), STORE_LIST_COLD);
    read_twice("k", 1, 2);
    store_range("n", 0, 30);
    ck_assert(is_kept(main_tail));
    drop_range("n", 25, 30, NOW); /* HOT has less than its share: the main queue gives */
    for (unsigned i = 0; is_kept(main_tail); i++) {
        ck_assert_uint_lt(i, 40 * PLACES);
        store_range("k", 200 + i, 201 + i);
        ck_assert(is_there(s, numbered("k", 200 + i), NOW) &&
                  is_there(s, numbered("k", 200 + i), NOW));
    }
    ck_assert_uint_ge(class_of(s, CLASS, NOW).count.moves_within_lru, 2);
}

/* Nothing is free, and all was read: there is room nevertheless. */
TEST(there_is_room_though_all_was_read)
{
    store_range("k", 0, PLACES);
    read_twice("k", 0, PLACES);
    for (unsigned i = 0; i < 5 * PLACES; i++) {
        store_range("n", i, i + 1);
        ck_assert(is_there(s, numbered("n", i), NOW) &&
                  is_there(s, numbered("n", i), NOW));
    }
    ck_assert_uint_eq(totals_of(s).count.evicted, 5 * PLACES);
    ck_assert_uint_eq(class_of(s, CLASS, NOW).count.outofmemory, 0);
}

TEST(expired_items_leave_first)
{
    put_range("e", 0, PLACES / 2, VALUE, NOW + 1, NOW);
    store_range("k", PLACES / 2, PLACES);
    put_range("n", 0, PLACES / 20, VALUE, 0, NOW + 3);
    ck_assert_uint_eq(totals_of(s).count.reclaimed, PLACES / 20);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
}

TEST(nothing_leaves_when_it_may_not)
{
    conf.can_evict = false;
    reopen();
    store_range("k", 0, PLACES);
    ck_assert_int_eq(put_sized(s, "n", VALUE, 0, NOW), STORE_NO_MEMORY);
    ck_assert_uint_eq(count_kept("k", 0, PLACES), PLACES);
}

/* ---- reads and stores ------------------------------------------------------------------ */

/* Nothing moves, and a minute passes before a third one has anything to note. */
TEST(reads_move_nothing)
{
    store_range("k", 0, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(is_there(s, "k0", NOW + i));
    }
    struct item *it = hold("k0", NOW + 60);
    ck_assert_uint_eq(item_accessed(it), NOW + 1);
    store_release(s, it);
    it = hold("k0", NOW + 62);
    ck_assert_uint_eq(item_accessed(it), NOW + 62);
    ck_assert(item_was_fetched(it));
    store_release(s, it);
    ck_assert_int_eq(list_of_key("k0"), STORE_LIST_HOT);
    ck_assert_uint_eq(class_of(s, CLASS, NOW).count.moves_within_lru, 0);
}

/* A thread's clock may lag: what was stored behind a flush by one that is ahead stays behind it. */
TEST(a_read_does_not_make_an_item_older)
{
    store_flush(s, NOW + 10, NOW);
    expect_ok(put_sized(s, "k", VALUE, STORE_NEVER, NOW + 11));
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(lookup(s, "k", NOW + 10), STORE_OK);
        ck_assert_int_eq(lookup(s, "k", NOW + 11), STORE_OK);
    }
}

TEST(what_is_stored_anew_stays_in_its_queue)
{
    store_range("k", 0, PLACES - 2);
    ck_assert_int_eq(list_of_key("k0"), STORE_LIST_HOT);
    ck_assert_int_eq(list_of_key("k1"), STORE_LIST_COLD);
    read_twice("k", 0, 1);
    store_range("k", 0, 2);
    ck_assert_int_eq(list_of_key("k0"), STORE_LIST_HOT);
    ck_assert_int_eq(list_of_key("k1"), STORE_LIST_COLD);
    store_range("n", 0, 40);
    ck_assert_int_eq(list_of_key("k0"), STORE_LIST_COLD); /* its reads counted on */
}

TEST(a_ghost_that_is_stored_again_comes_to_the_main_queue)
{
    store_range("k", 0, PLACES + 10);
    ck_assert(!is_kept("k0"));
    store_range("k", 0, 1);
    ck_assert_int_eq(list_of_key("k0"), STORE_LIST_COLD);
    ck_assert_uint_eq(class_of(s, CLASS, NOW).count.ghost_hits, 1);
    store_range("n", 0, 1);
    ck_assert_int_eq(list_of_key("n0"), STORE_LIST_HOT);
    ck_assert_uint_eq(class_of(s, CLASS, NOW).count.ghost_hits, 1);
}

TEST(what_is_deleted_comes_back_to_the_main_queue_if_it_would_have_stayed)
{
    store_range("k", 0, PLACES + 10);
    store_range("k", 0, 1); /* it was a ghost: into the main queue */
    store_range("n", 0, 2);
    read_twice("n", 0, 1);
    drop("k0", NOW);
    drop("n0", NOW);
    drop("n1", NOW);
    store_range("k", 0, 1);
    store_range("n", 0, 2);
    ck_assert_int_eq(list_of_key("k0"), STORE_LIST_COLD);
    ck_assert_int_eq(list_of_key("n0"), STORE_LIST_COLD);
    ck_assert_int_eq(list_of_key("n1"), STORE_LIST_HOT);
}

/* There are about as many ghosts as items. */
TEST(old_ghosts_are_forgotten)
{
    store_range("k", 0, 20 * PLACES);
    store_range("k", 0, PLACES);
    ck_assert_uint_le(class_of(s, CLASS, NOW).count.ghost_hits, 5);
}

/* ---- change of policy ------------------------------------------------------------------ */

TEST(segments_drain_into_the_main_queue)
{
    use_policy(STORE_LRU_SEGMENTED);
    store_range("k", 0, PLACES);
    read_twice("k", 0, 20);
    (void)store_juggle(s, CLASS, MOVES, NOW);
    ck_assert_uint_gt(listed(STORE_LIST_WARM), 0);
    use_policy(STORE_LRU_S3FIFO);
    (void)store_juggle(s, CLASS, MOVES, NOW + 1);
    ck_assert_uint_eq(listed(STORE_LIST_WARM), 0);
    ck_assert_uint_eq(listed(STORE_LIST_HOT) + listed(STORE_LIST_COLD), PLACES);
    store_range("n", 0, PLACES);
    ck_assert_uint_eq(totals_of(s).count.evicted, PLACES);
}

/* Dead items, too, count one by one. */
TEST(a_visit_frees_so_many_at_most)
{
    enum { FEW = 7 };

    store_range("k", 0, PLACES);
    use_policy(STORE_LRU_FLAT);
    (void)store_juggle(s, CLASS, MOVES, NOW);
    store_flush(s, 0, NOW);
    struct store_juggled done = store_juggle(s, CLASS, FEW, NOW + 1);
    ck_assert_uint_eq(done.settled + done.reordered, FEW);
    ck_assert_uint_eq(totals_of(s).curr_items, PLACES - FEW);
}

/* Nobody drains. */
TEST(old_segments_give_room)
{
    use_policy(STORE_LRU_SEGMENTED);
    store_range("k", 0, PLACES);
    read_twice("k", 0, PLACES);
    (void)store_juggle(s, CLASS, MOVES, NOW);
    use_policy(STORE_LRU_S3FIFO);
    store_range("n", 0, 3 * PLACES);
    ck_assert_uint_eq(class_of(s, CLASS, NOW).count.outofmemory, 0);
}

TEST(both_queues_drain_into_a_flat_list)
{
    store_range("k", 0, PLACES);
    use_policy(STORE_LRU_FLAT);
    (void)store_juggle(s, CLASS, MOVES, NOW);
    ck_assert_uint_eq(listed(STORE_LIST_COLD), PLACES);
    store_range("n", 0, 3);
    ck_assert_uint_eq(count_kept("n", 0, 3), 3);
}

TEST(policies_have_names)
{
    ck_assert_str_eq(store_lru_name(STORE_LRU_FLAT), "flat");
    ck_assert_str_eq(store_lru_name(STORE_LRU_SEGMENTED), "segmented");
    ck_assert_str_eq(store_lru_name(STORE_LRU_S3FIFO), "s3fifo");
}

/* As by `lru tune`. */
TEST(ghosts_outlive_settings)
{
    store_range("k", 0, 3 * PLACES);
    uint64_t used = atomic_load(&s->lru.ghost.used);

    ck_assert_uint_gt(used, GHOST_WORDS_LEAST);
    store_set_lru(s, &conf.lru);
    ck_assert_uint_eq(atomic_load(&s->lru.ghost.used), used);
}
