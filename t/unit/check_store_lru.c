/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The segmented LRU: where items go when they are stored, read, juggled and pressed for
 * memory; the flat one when the mode changes; what is told of evictions.
 */
#include "fixture_store.h"

#include "base/rng.h"

#define MIDDLE_VALUE 66560u /* class 31: 12 a page */
#define MIDDLE_CLASS 31u
#define MOVES 500u

static struct store_event events[4];
static char event_key[32];
static unsigned event_count;

static void
note_event(void *ctx, const struct store_event *event)
{
    ck_assert_ptr_eq(ctx, &event_count);
    ck_assert_int_eq(event->kind, STORE_EVENT_EVICTION);
    events[event_count++ % 4] = *event;
    snprintf(event_key, sizeof(event_key), "%.*s", (int)event->key.len, event->key.p);
}

static void
set_up(void)
{
    conf = default_conf(64 * MIB);
    conf.whole_pages = true;
    conf.lru = segmented_lru();
    event_count = 0;
    s = open_store(&conf);
}

static enum store_status
put_middle(const char *prefix, unsigned i, uint32_t exptime, uint32_t now)
{
    return put_sized(s, numbered(prefix, i), MIDDLE_VALUE, exptime, now);
}

static uint64_t
listed(unsigned class_id, enum store_list list)
{
    return class_of(s, class_id, NOW).list_number[list];
}

static enum store_list
list_of_key(const char *key, uint32_t now)
{
    static const struct store_look glance;
    struct store_seen seen;
    struct item *it;

    expect_ok(store_look(s, key_of(key), &glance, now, &seen, &it));
    enum store_list list = item_list(it);
    store_release(s, it);
    return list;
}

/* Every list's number and bytes are those of its items. */
static void
check_lists(unsigned class_id)
{
    struct lru_class *c = &s->lru.classes[class_id];
    struct store_class_stats stats = class_of(s, class_id, NOW);
    uint64_t all = 0, bytes = 0;

    for (unsigned i = 0; i < STORE_LISTS; i++) {
        uint64_t items = 0;

        struct item *next;
        for (struct item *it = c->lists[i].head; it != NULL; it = next) {
            next = link_item(&s->table.range, it->next);
            ck_assert_uint_eq(item_list(it), i);
            ck_assert(next == NULL ? c->lists[i].tail == it
                                   : link_item(&s->table.range, next->prev) == it);
            items++;
            bytes += item_accounted(s, it);
        }
        ck_assert_uint_eq(items, stats.list_number[i]);
        all += items;
    }
    ck_assert_uint_eq(all, stats.number);
    ck_assert_uint_eq(bytes, stats.item_bytes);
}

/* ---- reads ----------------------------------------------------------------------------- */

FIXTURE(set_up, tear_down_store);

TEST(stored_items_are_hot)
{
    put(s, STORE_SET, "a", "1", 0, NOW);
    put(s, STORE_SET, "b", "1", NOW + 10, NOW);
    ck_assert_uint_eq(listed(1, STORE_LIST_HOT), 2);
    put(s, STORE_SET, "a", "2", 0, NOW);
    ck_assert_uint_eq(listed(1, STORE_LIST_HOT), 2);
    check_lists(1);
}

TEST(hot_items_read_twice_go_to_warm_later)
{
    put(s, STORE_SET, "a", "1", 0, NOW);
    put(s, STORE_SET, "b", "1", 0, NOW);
    put(s, STORE_SET, "c", "1", 0, NOW);
    ck_assert(is_there(s, "a", NOW + 1));
    ck_assert(is_there(s, "a", NOW + 2));
    ck_assert(is_there(s, "b", NOW + 2));
    ck_assert_uint_eq(listed(1, STORE_LIST_HOT), 3);
    ck_assert_uint_gt(juggle(s, 1, MOVES, NOW + 2), 0);
    ck_assert_int_eq(list_of_key("a", NOW + 2), STORE_LIST_WARM);
    ck_assert_int_eq(list_of_key("b", NOW + 2), STORE_LIST_COLD);
    ck_assert_uint_eq(class_of(s, 1, NOW + 2).count.moves_to_warm, 1);
    check_lists(1);
}

/* All to COLD: they are idle, and it is empty. */
static void
cool(const char *keys, uint32_t now)
{
    for (const char *p = keys; *p != '\0'; p++) {
        char key[2] = {*p};

        expect_ok(put(s, STORE_SET, key, "1", 0, now));
    }
    (void)juggle(s, 1, MOVES, now + 1);
    ck_assert_uint_eq(listed(1, STORE_LIST_COLD), strlen(keys));
}

TEST(cold_items_go_to_warm_with_the_second_read)
{
    cool("abc", NOW);
    ck_assert_uint_eq(class_of(s, 1, NOW).count.moves_to_cold, 3);
    ck_assert_uint_eq(class_of(s, 1, NOW + 8).age, 8);
    ck_assert(is_there(s, "b", NOW + 5));
    ck_assert_int_eq(list_of_key("b", NOW + 5), STORE_LIST_COLD);
    ck_assert(is_there(s, "b", NOW + 6));
    ck_assert_int_eq(list_of_key("b", NOW + 6), STORE_LIST_WARM);
    ck_assert_uint_eq(class_of(s, 1, NOW).count.moves_to_warm, 1);
    ck_assert_uint_eq(class_of(s, 1, NOW + 8).age_warm, 2);
    check_lists(1);
}

static void *
read_a(void *unused)
{
    (void)unused;
    ck_assert(is_there(s, "a", NOW + 1));
    return NULL;
}

/* Nobody waits for a busy list; the mark stays. */
TEST(a_read_never_waits_for_the_list)
{
    pthread_mutex_t *lock = &s->lru.classes[1].lock;

    cool("a", NOW);
    ck_assert(is_there(s, "a", NOW + 1));
    PTHREAD_OK(pthread_mutex_lock(lock));
    /* Elsewhere: the one that has the list's lock may take no stripe. */
    pthread_t reader;
    PTHREAD_OK(pthread_create(&reader, NULL, read_a, NULL));
    PTHREAD_OK(pthread_join(reader, NULL));
    PTHREAD_OK(pthread_mutex_unlock(lock));
    ck_assert_int_eq(list_of_key("a", NOW + 1), STORE_LIST_COLD);
    ck_assert_uint_eq(juggle(s, 1, 1, NOW + 1), 1);
    ck_assert_int_eq(list_of_key("a", NOW + 1), STORE_LIST_WARM);
}

TEST(warm_items_read_again_stay)
{
    conf.lru.warm_pct = 100;
    reopen_with(64);
    cool("ab", NOW);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(is_there(s, "a", NOW + 1));
        ck_assert(is_there(s, "b", NOW + 1));
    }
    ck_assert(is_there(s, "a", NOW + 50));
    /* COLD is empty: whoever is idle in WARM would go there. */
    (void)juggle(s, 1, MOVES, NOW + 50);
    ck_assert_int_eq(list_of_key("a", NOW + 50), STORE_LIST_WARM);
    ck_assert_int_eq(list_of_key("b", NOW + 50), STORE_LIST_COLD);
    ck_assert_uint_eq(class_of(s, 1, NOW).count.moves_within_lru, 1);
    check_lists(1);
}

/* ---- bounds ---------------------------------------------------------------------------- */

TEST(hot_keeps_its_share_of_the_bytes)
{
    put_range("k", 100, 200, MIDDLE_VALUE, 0, NOW);
    while (juggle(s, MIDDLE_CLASS, 7, NOW) > 0) {
    }
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_HOT), 20);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_COLD), 80);
    ck_assert_int_eq(list_of_key("k199", NOW), STORE_LIST_HOT);
    ck_assert_int_eq(list_of_key("k100", NOW), STORE_LIST_COLD);
    check_lists(MIDDLE_CLASS);
}

TEST(ages_bound_hot_and_warm)
{
    conf.lru.hot_pct = 100;
    conf.lru.warm_pct = 100;
    reopen_with(64);
    cool("cw", NOW);
    ck_assert(is_there(s, "w", NOW + 2) && is_there(s, "w", NOW + 2));
    put(s, STORE_SET, "h", "1", 0, NOW + 10);
    /* COLD's tail is 11 s old at NOW + 11: HOT may have 2.2, WARM 22. */
    (void)juggle(s, 1, MOVES, NOW + 11);
    ck_assert_int_eq(list_of_key("h", NOW + 11), STORE_LIST_HOT);
    ck_assert_int_eq(list_of_key("w", NOW + 11), STORE_LIST_WARM);
    (void)juggle(s, 1, MOVES, NOW + 14);
    ck_assert_int_eq(list_of_key("h", NOW + 14), STORE_LIST_COLD);
    ck_assert_int_eq(list_of_key("w", NOW + 14), STORE_LIST_WARM);
    /* Without the old one COLD's age begins with "h". */
    drop("c", NOW);
    (void)juggle(s, 1, MOVES, NOW + 15);
    ck_assert_int_eq(list_of_key("w", NOW + 15), STORE_LIST_COLD);
}

TEST(a_step_moves_no_more_than_asked)
{
    put_range("k", 0, 100, MIDDLE_VALUE, 0, NOW);
    ck_assert_uint_eq(juggle(s, MIDDLE_CLASS, 3, NOW), 3);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_COLD), 3);
    ck_assert_uint_eq(totals_of(s).juggles, 0);
    (void)juggle(s, store_class_count(s), 3, NOW);
    ck_assert_uint_eq(totals_of(s).juggles, 1);
    store_reset_stats(s);
    ck_assert_uint_eq(totals_of(s).juggles, 0);
}

/* ---- what the tests of the original fix -------------------------------------------------- */

/* Nobody juggles: an allocation finds its victims in HOT, by way of COLD. */
TEST_LOOP(memory_is_found_without_juggling, 4)
{
    char key[256];

    reopen_with(3);
    for (unsigned i = 0; i < 15000; i++) {
        int n = snprintf(key, sizeof(key), "%0205u", i);

        ck_assert_int_eq(n, 205);
        expect_ok(put(s, STORE_SET, key, "ok", 0, NOW));
        if (_i > 0) {
            for (int read = 0; read <= _i; read++) {
                ck_assert(is_there(s, key, NOW));
            }
        }
        if (_i == 3) {
            (void)juggle(s, 6, 10, NOW); /* they sit in WARM */
        }
    }
    ck_assert(is_there(s, key, NOW));
    ck_assert_uint_gt(totals_of(s).count.evicted, 1000);
    ck_assert_uint_gt(class_of(s, 6, NOW).direct_reclaims, 0);
    ck_assert_uint_gt(class_of(s, 6, NOW).count.moves_to_cold, 0);
    check_lists(6);
}

TEST(what_has_expired_goes_in_the_background)
{
    reopen_with(6);
    put_range("ifoo", 0, 10, MIDDLE_VALUE, NOW + 1, NOW);
    for (unsigned t = 0; t < 4; t++) {
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + t);
    }
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 10);
    ck_assert_uint_eq(totals_of(s).curr_items, 0);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).used_chunks, 0);
}

TEST(a_canary_that_is_read_survives)
{
    reopen_with(6);
    expect_ok(put_middle("canary", 0, 0, NOW));
    for (unsigned i = 0; i < 30; i++) {
        expect_ok(put_middle("ifoo", i, 0, NOW));
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    }
    ck_assert(is_there(s, "canary0", NOW));
    ck_assert(is_there(s, "canary0", NOW));
    for (unsigned i = 30; i < 100; i++) {
        expect_ok(put_middle("ifoo", i, 0, NOW + i / 30));
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + i / 30);
    }
    ck_assert(is_there(s, "canary0", NOW + 3));
    ck_assert_uint_gt(totals_of(s).count.evicted, 0);
    ck_assert_uint_gt(class_of(s, MIDDLE_CLASS, NOW).count.moves_to_cold, 0);
    ck_assert_uint_gt(class_of(s, MIDDLE_CLASS, NOW).count.moves_to_warm, 0);
    ck_assert_uint_gt(listed(MIDDLE_CLASS, STORE_LIST_WARM), 0);
    check_lists(MIDDLE_CLASS);
}

/* Nobody juggles, COLD stays empty: those that were read twice are not the next victims. */
TEST(canaries_survive_without_juggling)
{
    reopen_with(6);
    put_range("canary", 0, 3, MIDDLE_VALUE, 0, NOW);
    for (unsigned i = 0; i < 100; i++) {
        expect_ok(put_middle("ifoo", i, 0, NOW));
        if (i == 30) {
            for (unsigned read = 0; read < 6; read++) {
                ck_assert(is_there(s, read % 2 == 0 ? "canary0" : "canary1", NOW));
            }
        }
    }
    ck_assert(is_there(s, "canary0", NOW) && is_there(s, "canary1", NOW));
    ck_assert(!is_there(s, "canary2", NOW));
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_WARM), 2);
    ck_assert_uint_gt(totals_of(s).count.evicted, 0);
    check_lists(MIDDLE_CLASS);
}

/* Everything was read again and again, more than WARM holds. What is stored then makes old items
 * go, at whatever pace the lists are kept in order, and never other new ones. */
TEST_LOOP(new_items_do_not_evict_each_other, 48)
{
    enum { OLD = 384, NEW = 130, FEW = 40, PACES = 16 };
    unsigned pace = (unsigned)_i % PACES + 1, tick = (unsigned)_i / PACES * FEW + FEW;

    reopen_with(OLD / 12);
    put_range("old", 0, OLD, MIDDLE_VALUE, 0, NOW);
    for (unsigned i = 0; i < 3 * OLD; i++) {
        if (i % OLD == 0) {
            (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + i / OLD);
        }
        ck_assert(is_there(s, numbered("old", i % OLD), NOW + 2 + i / (4 * tick)));
    }
    for (unsigned i = 0; i < NEW; i++) {
        uint32_t now = NOW + 2 + (3 * OLD + i) / (4 * tick);

        expect_ok(put_middle("new", i, 0, now));
        if (i % pace == 0) {
            (void)juggle(s, MIDDLE_CLASS, FEW, now);
        }
    }
    ck_assert_uint_eq(totals_of(s).count.evicted, NEW);
    ck_assert_uint_eq(count_range("new", 0, NEW, NOW + 50), NEW);
    check_lists(MIDDLE_CLASS);
}

TEST(short_lived_items_are_not_evicted)
{
    conf.lru.temp_ttl = 61;
    reopen_with(2);
    expect_ok(put_middle("canary", 0, NOW + 30, NOW));
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_HOT), 0);
    for (unsigned i = 0; i < 100; i++) {
        expect_ok(put_middle("ifoo", i, NOW + 3600, NOW));
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    }
    ck_assert(is_there(s, "canary0", NOW));
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 1);
    ck_assert_uint_gt(listed(MIDDLE_CLASS, STORE_LIST_HOT), 0);
    ck_assert_uint_gt(totals_of(s).count.evicted, 70);
    (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + 31);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 0);
    expect_ok(put_middle("never", 0, 0, NOW));
    ck_assert_int_eq(list_of_key("never0", NOW), STORE_LIST_HOT);
}

/* A touch may make a short life long: then the item is like any other. */
TEST(touched_items_leave_temp)
{
    conf.lru.temp_ttl = 61;
    reopen_with(1);
    for (unsigned i = 0; i < 12; i++) {
        expect_ok(put_middle("k", i, NOW + 30, NOW));
        expect_ok(store_touch(s, key_of(numbered("k", i)), STORE_NEVER, NOW, &r));
    }
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 12);
    expect_ok(put_middle("l", 0, 0, NOW));
    ck_assert_uint_eq(totals_of(s).count.evicted, 1);
    (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 0);
}

/* ---- pressure -------------------------------------------------------------------------- */

TEST(without_eviction_only_the_dead_give_room)
{
    unsigned stored = 0;

    conf.can_evict = false;
    reopen_with(2);
    while (put_middle("k", stored, NOW + (stored == 3 ? 1 : 100), NOW) == STORE_OK) {
        stored++;
    }
    ck_assert_uint_eq(stored, 24);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_HOT), 24);
    ck_assert_int_eq(put_middle("k", 99, 0, NOW + 5), STORE_NO_MEMORY);
    for (unsigned i = 0; i < 3; i++) {
        drop(numbered("k", i), NOW);
        expect_ok(put_middle("l", i, 0, NOW));
    }
    /* Now the dead one is the tail. */
    expect_ok(put_middle("k", 99, 0, NOW + 5));
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 1);
    ck_assert_int_eq(put_middle("k", 98, 0, NOW + 5), STORE_NO_MEMORY);
}

TEST(all_held_means_no_memory)
{
    struct item *held[24];

    reopen_with(2);
    for (unsigned i = 0; i < 24; i++) {
        expect_ok(put_middle("k", i, 0, NOW));
        expect_ok(store_get(s, key_of(numbered("k", i)), NOW, &held[i]));
    }
    ck_assert_int_eq(put_middle("l", 0, 0, NOW), STORE_NO_MEMORY);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).count.outofmemory, 1);
    for (unsigned i = 0; i < 24; i++) {
        store_release(s, held[i]);
    }
    expect_ok(put_middle("l", 0, 0, NOW));
    check_lists(MIDDLE_CLASS);
}

TEST_LOOP(a_leaked_reference_is_repaired, 2)
{
    conf.lru.policy = (enum store_lru_policy)_i;
    conf.tail_repair_seconds = 100;
    reopen_with(1);
    expect_ok(put_middle("leak", 0, 0, NOW));
    struct item *held = hold("leak0", NOW);
    put_range("k", 0, 30, MIDDLE_VALUE, 0, NOW + 50);
    ck_assert_int_eq(list_of_key("leak0", NOW), STORE_LIST_COLD);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).count.tailrepairs, 0);
    put_range("l", 0, 30, MIDDLE_VALUE, 0, NOW + 150);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).count.tailrepairs, 1);
    ck_assert_int_eq(lookup(s, "leak0", NOW + 150), STORE_MISS);
    ck_assert_uint_eq(item_value_len(held), MIDDLE_VALUE);
    store_release(s, held);
    check_lists(MIDDLE_CLASS);
}

TEST_LOOP(evictions_are_told, 2)
{
    conf.lru.policy = (enum store_lru_policy)_i;
    conf.on_event = note_event;
    conf.event_ctx = &event_count;
    reopen_with(1);
    expect_ok(put_middle("k", 0, NOW + 600, NOW));
    ck_assert(is_there(s, "k0", NOW));
    for (unsigned i = 1; i < 13; i++) {
        ck_assert_uint_eq(event_count, 0);
        expect_ok(put_middle("k", i, 0, NOW + 7));
    }
    ck_assert_uint_eq(event_count, 1);
    ck_assert_str_eq(event_key, "k0");
    ck_assert(events[0].was_fetched);
    ck_assert_int_eq(events[0].ttl, 593);
    ck_assert_uint_eq(events[0].idle, 7);
    ck_assert_uint_eq(events[0].class_id, MIDDLE_CLASS);
    ck_assert_uint_eq(events[0].value_len, MIDDLE_VALUE);
    expect_ok(put_middle("k", 13, 0, NOW + 7));
    ck_assert_uint_eq(event_count, 2);
    ck_assert_int_eq(events[1].ttl, -1);
    ck_assert(!events[1].was_fetched);
}

/* A locked item is passed over, and its neighbour goes. */
TEST_LOOP(locked_items_are_not_waited_for, STORE_LRU_POLICIES)
{
    conf.lru.policy = (enum store_lru_policy)_i;
    reopen_with(1);
    put_range("k", 0, 12, MIDDLE_VALUE, 0, NOW);
    store_debug_lock(s, key_of("k0"), true);
    expect_ok(put_middle("l", 0, 0, NOW));
    expect_ok(put_middle("l", 1, 0, NOW));
    (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    store_debug_lock(s, key_of("k0"), false);
    ck_assert_uint_eq(totals_of(s).count.evicted, 2);
    ck_assert(is_there(s, "k0", NOW));
    /* s3fifo: its neighbours among the new ones, one of which is l0 */
    ck_assert_uint_eq(count_range("k", 0, 12, NOW), _i == STORE_LRU_S3FIFO ? 11 : 10);
    check_lists(MIDDLE_CLASS);
}

/* ---- change of mode -------------------------------------------------------------------- */

TEST(flat_mode_drains_the_lists)
{
    struct store_lru_conf lru = store_lru(s);

    ck_assert(lru.policy == STORE_LRU_SEGMENTED);
    ck_assert_uint_eq(lru.hot_pct, 20);
    cool("abc", NOW);
    ck_assert(is_there(s, "b", NOW + 1) && is_there(s, "b", NOW + 1));
    put(s, STORE_SET, "h", "1", 0, NOW);
    lru.policy = STORE_LRU_FLAT;
    store_set_lru(s, &lru);
    ck_assert(store_lru(s).policy == STORE_LRU_FLAT);
    put(s, STORE_SET, "f", "1", 0, NOW);
    ck_assert_uint_eq(listed(1, STORE_LIST_COLD), 3);
    ck_assert_uint_eq(listed(1, STORE_LIST_WARM), 1);
    (void)juggle(s, 1, MOVES, NOW + 1);
    ck_assert_uint_eq(listed(1, STORE_LIST_COLD), 5);
    ck_assert_uint_eq(juggle(s, 1, MOVES, NOW + 1), 0);
    check_lists(1);
    lru.policy = STORE_LRU_SEGMENTED;
    lru.temp_ttl = 10;
    store_set_lru(s, &lru);
    put(s, STORE_SET, "t", "1", NOW + 10, NOW);
    put(s, STORE_SET, "n", "1", NOW + 11, NOW);
    ck_assert_int_eq(list_of_key("t", NOW), STORE_LIST_TEMP);
    ck_assert_int_eq(list_of_key("n", NOW), STORE_LIST_HOT);
}

/* Flat again, and nobody drains: what is in HOT and WARM can still be evicted. */
TEST(old_lists_give_room_in_flat_mode)
{
    reopen_with(1);
    put_range("k", 0, 12, MIDDLE_VALUE, 0, NOW);
    conf.lru.policy = STORE_LRU_FLAT;
    store_set_lru(s, &conf.lru);
    put_range("l", 0, 12, MIDDLE_VALUE, 0, NOW);
    ck_assert_uint_gt(totals_of(s).count.evicted, 0);
    check_lists(MIDDLE_CLASS);
}

/* ---- anything -------------------------------------------------------------------------- */

/* Whatever happens, lists and counts agree, and there is always room for one more. */
TEST_LOOP(lists_agree_after_anything, 3)
{
    uint32_t now = NOW;

    conf.lru.temp_ttl = 3;
    reopen_with(2);
    struct rng rng = rng_of(99, (uint64_t)_i);
    for (unsigned n = 0; n < 20000; n++) {
        uint32_t exptime =
            rng_below(&rng, 5) == 0 ? now + 1 + (uint32_t)rng_below(&rng, 8) : 0;
        unsigned what = (unsigned)rng_below(&rng, 100);

        const char *key = numbered("key-", (unsigned)rng_below(&rng, 3000));
        if (what < 50) {
            expect_ok(put_sized(s, key, 900, exptime, now));
        } else if (what < 85) {
            (void)is_there(s, key, now);
            (void)is_there(s, key, now);
        } else if (what < 90) {
            ck_assert_int_le(store_delete(s, key_of(key), NULL, now, &r), STORE_MISS);
        } else if (what < 97) {
            (void)juggle(s, 12, (unsigned)rng_below(&rng, 30), now);
        } else if (what < 99) {
            now++;
        } else if (rng_below(&rng, 20) == 0) {
            conf.lru.policy = (enum store_lru_policy)rng_below(&rng, STORE_LRU_POLICIES);
            store_set_lru(s, &conf.lru);
        }
        if (n % 500 == 0) {
            check_lists(12);
        }
    }
    ck_assert_uint_gt(totals_of(s).count.evicted, 0);
    ck_assert_uint_gt(totals_of(s).count.reclaimed, 0);
    ck_assert_uint_gt(class_of(s, 12, now).count.moves_within_lru, 0);
}
