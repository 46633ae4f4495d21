/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The segmented LRU: where items go when they are stored, read, juggled and pressed for
 * memory; the flat one when the mode changes; what is told of evictions.
 */
#include "check_store.h"

#include "base/rng.h"

#define MIDDLE_VALUE 66560u /* class 31: 12 a page */
#define MIDDLE_CLASS 31u
#define MOVES 500u

static struct store *s;
static struct store_conf conf;
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
    conf.lru = (struct store_lru_conf){.is_segmented = true,
                                       .hot_pct = 20,
                                       .warm_pct = 40,
                                       .hot_factor = 0.2,
                                       .warm_factor = 2.0,
                                       .temp_ttl = -1};
    event_count = 0;
    s = open_store(&conf);
}

static void
tear_down(void)
{
    store_destroy(&s);
}

static void
reopen(unsigned mib)
{
    conf.limit_bytes = (uint64_t)mib * MIB;
    store_destroy(&s);
    s = open_store(&conf);
}

static enum store_status
put_middle(const char *prefix, unsigned i, uint32_t exptime, uint32_t now)
{
    char key[32];

    snprintf(key, sizeof(key), "%s%u", prefix, i);
    return put_sized(s, key, MIDDLE_VALUE, exptime, now);
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
    enum store_list list;

    ck_assert_int_eq(store_look(s, key_of(key), &glance, now, &seen, &it), STORE_OK);
    list = item_list(it);
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
        uint64_t number = 0;

        for (struct item *it = c->lists[i].head; it != NULL; it = it->next) {
            ck_assert_uint_eq(item_list(it), i);
            ck_assert(it->next == NULL ? c->lists[i].tail == it : it->next->prev == it);
            number++;
            bytes += item_accounted(s, it);
        }
        ck_assert_uint_eq(number, stats.list_number[i]);
        all += number;
    }
    ck_assert_uint_eq(all, stats.number);
    ck_assert_uint_eq(bytes, stats.item_bytes);
}

/* ---- reads ----------------------------------------------------------------------------- */

START_TEST(stored_items_are_hot)
{
    put(s, STORE_SET, "a", "1", 0, NOW);
    put(s, STORE_SET, "b", "1", NOW + 10, NOW);
    ck_assert_uint_eq(listed(1, STORE_LIST_HOT), 2);
    put(s, STORE_SET, "a", "2", 0, NOW);
    ck_assert_uint_eq(listed(1, STORE_LIST_HOT), 2);
    check_lists(1);
}
END_TEST

START_TEST(hot_items_read_twice_go_to_warm_later)
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
    ck_assert_uint_eq(class_of(s, 1, NOW + 2).moves_to_warm, 1);
    check_lists(1);
}
END_TEST

/* All to COLD: they are idle, and it is empty. */
static void
cool(const char *keys, uint32_t now)
{
    for (const char *p = keys; *p != '\0'; p++) {
        char key[2] = {*p};

        ck_assert_int_eq(put(s, STORE_SET, key, "1", 0, now), STORE_OK);
    }
    (void)juggle(s, 1, MOVES, now + 1);
    ck_assert_uint_eq(listed(1, STORE_LIST_COLD), strlen(keys));
}

START_TEST(cold_items_go_to_warm_with_the_second_read)
{
    cool("abc", NOW);
    ck_assert_uint_eq(class_of(s, 1, NOW).moves_to_cold, 3);
    ck_assert_uint_eq(class_of(s, 1, NOW + 8).age, 8);
    ck_assert(is_there(s, "b", NOW + 5));
    ck_assert_int_eq(list_of_key("b", NOW + 5), STORE_LIST_COLD);
    ck_assert(is_there(s, "b", NOW + 6));
    ck_assert_int_eq(list_of_key("b", NOW + 6), STORE_LIST_WARM);
    ck_assert_uint_eq(class_of(s, 1, NOW).moves_to_warm, 1);
    ck_assert_uint_eq(class_of(s, 1, NOW + 8).age_warm, 2);
    check_lists(1);
}
END_TEST

static void *
read_a(void *unused)
{
    (void)unused;
    ck_assert(is_there(s, "a", NOW + 1));
    return NULL;
}

/* Nobody waits for a busy list; the mark stays. */
START_TEST(a_read_never_waits_for_the_list)
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
END_TEST

START_TEST(warm_items_read_again_stay)
{
    conf.lru.warm_pct = 100;
    reopen(64);
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
    ck_assert_uint_eq(class_of(s, 1, NOW).moves_within_lru, 1);
    check_lists(1);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------- */

START_TEST(hot_keeps_its_share_of_the_bytes)
{
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(put_middle("k", 100 + i, 0, NOW), STORE_OK);
    }
    while (juggle(s, MIDDLE_CLASS, 7, NOW) > 0) {
    }
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_HOT), 20);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_COLD), 80);
    ck_assert_int_eq(list_of_key("k199", NOW), STORE_LIST_HOT);
    ck_assert_int_eq(list_of_key("k100", NOW), STORE_LIST_COLD);
    check_lists(MIDDLE_CLASS);
}
END_TEST

START_TEST(ages_bound_hot_and_warm)
{
    conf.lru.hot_pct = 100;
    conf.lru.warm_pct = 100;
    reopen(64);
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
    ck_assert_int_eq(store_delete(s, key_of("c"), NULL, NOW, &(struct store_result){0}),
                     STORE_OK);
    (void)juggle(s, 1, MOVES, NOW + 15);
    ck_assert_int_eq(list_of_key("w", NOW + 15), STORE_LIST_COLD);
}
END_TEST

START_TEST(a_step_moves_no_more_than_asked)
{
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(put_middle("k", i, 0, NOW), STORE_OK);
    }
    ck_assert_uint_eq(juggle(s, MIDDLE_CLASS, 3, NOW), 3);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_COLD), 3);
    ck_assert_uint_eq(totals_of(s).juggles, 0);
    (void)juggle(s, store_class_count(s), 3, NOW);
    ck_assert_uint_eq(totals_of(s).juggles, 1);
}
END_TEST

/* ---- what the tests of the original fix -------------------------------------------------- */

/* Nobody juggles: an allocation finds its victims in HOT, by way of COLD. */
START_TEST(memory_is_found_without_juggling)
{
    char key[256];

    reopen(3);
    for (unsigned i = 0; i < 15000; i++) {
        int n = snprintf(key, sizeof(key), "%0205u", i);

        ck_assert_int_eq(n, 205);
        ck_assert_int_eq(put(s, STORE_SET, key, "ok", 0, NOW), STORE_OK);
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
    ck_assert_uint_gt(totals_of(s).evictions, 1000);
    ck_assert_uint_gt(class_of(s, 6, NOW).direct_reclaims, 0);
    ck_assert_uint_gt(class_of(s, 6, NOW).moves_to_cold, 0);
    check_lists(6);
}
END_TEST

START_TEST(what_has_expired_goes_in_the_background)
{
    reopen(6);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(put_middle("ifoo", i, NOW + 1, NOW), STORE_OK);
    }
    for (unsigned t = 0; t < 4; t++) {
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + t);
    }
    ck_assert_uint_eq(totals_of(s).reclaimed, 10);
    ck_assert_uint_eq(totals_of(s).curr_items, 0);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).used_chunks, 0);
}
END_TEST

START_TEST(a_canary_that_is_read_survives)
{
    reopen(6);
    ck_assert_int_eq(put_middle("canary", 0, 0, NOW), STORE_OK);
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_int_eq(put_middle("ifoo", i, 0, NOW), STORE_OK);
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    }
    ck_assert(is_there(s, "canary0", NOW));
    ck_assert(is_there(s, "canary0", NOW));
    for (unsigned i = 30; i < 100; i++) {
        ck_assert_int_eq(put_middle("ifoo", i, 0, NOW + i / 30), STORE_OK);
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + i / 30);
    }
    ck_assert(is_there(s, "canary0", NOW + 3));
    ck_assert_uint_gt(totals_of(s).evictions, 0);
    ck_assert_uint_gt(class_of(s, MIDDLE_CLASS, NOW).moves_to_cold, 0);
    ck_assert_uint_gt(class_of(s, MIDDLE_CLASS, NOW).moves_to_warm, 0);
    ck_assert_uint_gt(listed(MIDDLE_CLASS, STORE_LIST_WARM), 0);
    check_lists(MIDDLE_CLASS);
}
END_TEST

/* Nobody juggles, COLD stays empty: those that were read twice are not the next victims. */
START_TEST(canaries_survive_without_juggling)
{
    reopen(6);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(put_middle("canary", i, 0, NOW), STORE_OK);
    }
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(put_middle("ifoo", i, 0, NOW), STORE_OK);
        if (i == 30) {
            for (unsigned read = 0; read < 6; read++) {
                ck_assert(is_there(s, read % 2 == 0 ? "canary0" : "canary1", NOW));
            }
        }
    }
    ck_assert(is_there(s, "canary0", NOW) && is_there(s, "canary1", NOW));
    ck_assert(!is_there(s, "canary2", NOW));
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_WARM), 2);
    ck_assert_uint_gt(totals_of(s).evictions, 0);
    check_lists(MIDDLE_CLASS);
}
END_TEST

/* Everything was read again and again, more than WARM holds. What is stored then makes old items
 * go, at whatever pace the lists are kept in order, and never other new ones. */
START_TEST(new_items_do_not_evict_each_other)
{
    enum { OLD = 384, NEW = 130, FEW = 40, PACES = 16 };
    unsigned pace = (unsigned)_i % PACES + 1, tick = (unsigned)_i / PACES * FEW + FEW;

    reopen(OLD / 12);
    for (unsigned i = 0; i < OLD; i++) {
        ck_assert_int_eq(put_middle("old", i, 0, NOW), STORE_OK);
    }
    for (unsigned i = 0; i < 3 * OLD; i++) {
        char key[32];

        if (i % OLD == 0) {
            (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + i / OLD);
        }
        snprintf(key, sizeof(key), "old%u", i % OLD);
        ck_assert(is_there(s, key, NOW + 2 + i / (4 * tick)));
    }
    for (unsigned i = 0; i < NEW; i++) {
        uint32_t now = NOW + 2 + (3 * OLD + i) / (4 * tick);

        ck_assert_int_eq(put_middle("new", i, 0, now), STORE_OK);
        if (i % pace == 0) {
            (void)juggle(s, MIDDLE_CLASS, FEW, now);
        }
    }
    ck_assert_uint_eq(totals_of(s).evictions, NEW);
    for (unsigned i = 0; i < NEW; i++) {
        char key[32];

        snprintf(key, sizeof(key), "new%u", i);
        ck_assert(is_there(s, key, NOW + 50));
    }
    check_lists(MIDDLE_CLASS);
}
END_TEST

START_TEST(short_lived_items_are_not_evicted)
{
    conf.lru.temp_ttl = 61;
    reopen(2);
    ck_assert_int_eq(put_middle("canary", 0, NOW + 30, NOW), STORE_OK);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_HOT), 0);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_int_eq(put_middle("ifoo", i, NOW + 3600, NOW), STORE_OK);
        (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    }
    ck_assert(is_there(s, "canary0", NOW));
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 1);
    ck_assert_uint_gt(listed(MIDDLE_CLASS, STORE_LIST_HOT), 0);
    ck_assert_uint_gt(totals_of(s).evictions, 70);
    (void)juggle(s, MIDDLE_CLASS, MOVES, NOW + 31);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 0);
    ck_assert_int_eq(put_middle("never", 0, 0, NOW), STORE_OK);
    ck_assert_int_eq(list_of_key("never0", NOW), STORE_LIST_HOT);
}
END_TEST

/* A touch may make a short life long: then the item is like any other. */
START_TEST(touched_items_leave_temp)
{
    struct store_result r;

    conf.lru.temp_ttl = 61;
    reopen(1);
    for (unsigned i = 0; i < 12; i++) {
        char key[32];

        ck_assert_int_eq(put_middle("k", i, NOW + 30, NOW), STORE_OK);
        snprintf(key, sizeof(key), "k%u", i);
        ck_assert_int_eq(store_touch(s, key_of(key), STORE_NEVER, NOW, &r), STORE_OK);
    }
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 12);
    ck_assert_int_eq(put_middle("l", 0, 0, NOW), STORE_OK);
    ck_assert_uint_eq(totals_of(s).evictions, 1);
    (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_TEMP), 0);
}
END_TEST

/* ---- pressure -------------------------------------------------------------------------- */

START_TEST(without_eviction_only_the_dead_give_room)
{
    unsigned stored = 0;

    conf.can_evict = false;
    reopen(2);
    while (put_middle("k", stored, NOW + (stored == 3 ? 1 : 100), NOW) == STORE_OK) {
        stored++;
    }
    ck_assert_uint_eq(stored, 24);
    ck_assert_uint_eq(totals_of(s).evictions, 0);
    ck_assert_uint_eq(listed(MIDDLE_CLASS, STORE_LIST_HOT), 24);
    ck_assert_int_eq(put_middle("k", 99, 0, NOW + 5), STORE_NO_MEMORY);
    for (unsigned i = 0; i < 3; i++) {
        char key[8];

        snprintf(key, sizeof(key), "k%u", i);
        ck_assert_int_eq(
            store_delete(s, key_of(key), NULL, NOW, &(struct store_result){0}), STORE_OK);
        ck_assert_int_eq(put_middle("l", i, 0, NOW), STORE_OK);
    }
    /* Now the dead one is the tail. */
    ck_assert_int_eq(put_middle("k", 99, 0, NOW + 5), STORE_OK);
    ck_assert_uint_eq(totals_of(s).reclaimed, 1);
    ck_assert_int_eq(put_middle("k", 98, 0, NOW + 5), STORE_NO_MEMORY);
}
END_TEST

START_TEST(all_held_means_no_memory)
{
    struct item *held[24];

    reopen(2);
    for (unsigned i = 0; i < 24; i++) {
        char key[8];

        ck_assert_int_eq(put_middle("k", i, 0, NOW), STORE_OK);
        snprintf(key, sizeof(key), "k%u", i);
        ck_assert_int_eq(store_get(s, key_of(key), NOW, &held[i]), STORE_OK);
    }
    ck_assert_int_eq(put_middle("l", 0, 0, NOW), STORE_NO_MEMORY);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).outofmemory, 1);
    for (unsigned i = 0; i < 24; i++) {
        store_release(s, held[i]);
    }
    ck_assert_int_eq(put_middle("l", 0, 0, NOW), STORE_OK);
    check_lists(MIDDLE_CLASS);
}
END_TEST

START_TEST(a_leaked_reference_is_repaired)
{
    struct item *held;

    conf.lru.is_segmented = _i == 1;
    conf.tail_repair_seconds = 100;
    reopen(1);
    ck_assert_int_eq(put_middle("leak", 0, 0, NOW), STORE_OK);
    ck_assert_int_eq(store_get(s, key_of("leak0"), NOW, &held), STORE_OK);
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_int_eq(put_middle("k", i, 0, NOW + 50), STORE_OK);
    }
    ck_assert_int_eq(list_of_key("leak0", NOW), STORE_LIST_COLD);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).tailrepairs, 0);
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_int_eq(put_middle("l", i, 0, NOW + 150), STORE_OK);
    }
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).tailrepairs, 1);
    ck_assert_int_eq(lookup(s, "leak0", NOW + 150), STORE_MISS);
    ck_assert_uint_eq(item_value_len(held), MIDDLE_VALUE);
    store_release(s, held);
    check_lists(MIDDLE_CLASS);
}
END_TEST

START_TEST(evictions_are_told)
{
    conf.lru.is_segmented = _i == 1;
    conf.on_event = note_event;
    conf.event_ctx = &event_count;
    reopen(1);
    ck_assert_int_eq(put_middle("k", 0, NOW + 600, NOW), STORE_OK);
    ck_assert(is_there(s, "k0", NOW));
    for (unsigned i = 1; i < 13; i++) {
        ck_assert_uint_eq(event_count, 0);
        ck_assert_int_eq(put_middle("k", i, 0, NOW + 7), STORE_OK);
    }
    ck_assert_uint_eq(event_count, 1);
    ck_assert_str_eq(event_key, "k0");
    ck_assert(events[0].was_fetched);
    ck_assert_int_eq(events[0].ttl, 593);
    ck_assert_uint_eq(events[0].idle, 7);
    ck_assert_uint_eq(events[0].class_id, MIDDLE_CLASS);
    ck_assert_uint_eq(events[0].total, 48 + 8 + 2 + 1 + 10 + MIDDLE_VALUE + 2);
    ck_assert_int_eq(put_middle("k", 13, 0, NOW + 7), STORE_OK);
    ck_assert_uint_eq(event_count, 2);
    ck_assert_int_eq(events[1].ttl, -1);
    ck_assert(!events[1].was_fetched);
}
END_TEST

/* A locked item is passed over, and its neighbour goes. */
START_TEST(locked_items_are_not_waited_for)
{
    conf.lru.is_segmented = _i == 1;
    reopen(1);
    for (unsigned i = 0; i < 12; i++) {
        ck_assert_int_eq(put_middle("k", i, 0, NOW), STORE_OK);
    }
    store_debug_lock(s, key_of("k0"), true);
    ck_assert_int_eq(put_middle("l", 0, 0, NOW), STORE_OK);
    ck_assert_int_eq(put_middle("l", 1, 0, NOW), STORE_OK);
    (void)juggle(s, MIDDLE_CLASS, MOVES, NOW);
    store_debug_lock(s, key_of("k0"), false);
    ck_assert_uint_eq(totals_of(s).evictions, 2);
    ck_assert(is_there(s, "k0", NOW));
    ck_assert_int_eq(lookup(s, "k1", NOW), STORE_MISS);
    check_lists(MIDDLE_CLASS);
}
END_TEST

/* ---- change of mode -------------------------------------------------------------------- */

START_TEST(flat_mode_drains_the_lists)
{
    struct store_lru_conf lru = store_lru(s);

    ck_assert(lru.is_segmented);
    ck_assert_uint_eq(lru.hot_pct, 20);
    cool("abc", NOW);
    ck_assert(is_there(s, "b", NOW + 1) && is_there(s, "b", NOW + 1));
    put(s, STORE_SET, "h", "1", 0, NOW);
    lru.is_segmented = false;
    store_set_lru(s, &lru);
    ck_assert(!store_lru(s).is_segmented);
    put(s, STORE_SET, "f", "1", 0, NOW);
    ck_assert_uint_eq(listed(1, STORE_LIST_COLD), 3);
    ck_assert_uint_eq(listed(1, STORE_LIST_WARM), 1);
    (void)juggle(s, 1, MOVES, NOW + 1);
    ck_assert_uint_eq(listed(1, STORE_LIST_COLD), 5);
    ck_assert_uint_eq(juggle(s, 1, MOVES, NOW + 1), 0);
    check_lists(1);
    lru.is_segmented = true;
    lru.temp_ttl = 10;
    store_set_lru(s, &lru);
    put(s, STORE_SET, "t", "1", NOW + 10, NOW);
    put(s, STORE_SET, "n", "1", NOW + 11, NOW);
    ck_assert_int_eq(list_of_key("t", NOW), STORE_LIST_TEMP);
    ck_assert_int_eq(list_of_key("n", NOW), STORE_LIST_HOT);
}
END_TEST

/* Flat again, and nobody drains: what is in HOT and WARM can still be evicted. */
START_TEST(old_lists_give_room_in_flat_mode)
{
    reopen(1);
    for (unsigned i = 0; i < 12; i++) {
        ck_assert_int_eq(put_middle("k", i, 0, NOW), STORE_OK);
    }
    conf.lru.is_segmented = false;
    store_set_lru(s, &conf.lru);
    for (unsigned i = 0; i < 12; i++) {
        ck_assert_int_eq(put_middle("l", i, 0, NOW), STORE_OK);
    }
    ck_assert_uint_gt(totals_of(s).evictions, 0);
    check_lists(MIDDLE_CLASS);
}
END_TEST

/* ---- anything -------------------------------------------------------------------------- */

/* Whatever happens, lists and counts agree, and there is always room for one more. */
START_TEST(lists_agree_after_anything)
{
    struct rng rng;
    uint32_t now = NOW;

    conf.lru.temp_ttl = 3;
    reopen(2);
    rng_init(&rng, 99, (uint64_t)_i);
    for (unsigned n = 0; n < 20000; n++) {
        char key[32];
        uint32_t exptime =
            rng_below(&rng, 5) == 0 ? now + 1 + (uint32_t)rng_below(&rng, 8) : 0;
        unsigned what = (unsigned)rng_below(&rng, 100);

        snprintf(key, sizeof(key), "key-%u", (unsigned)rng_below(&rng, 3000));
        if (what < 50) {
            ck_assert_int_eq(put_sized(s, key, 900, exptime, now), STORE_OK);
        } else if (what < 85) {
            (void)is_there(s, key, now);
            (void)is_there(s, key, now);
        } else if (what < 90) {
            struct store_result r;

            ck_assert_int_le(store_delete(s, key_of(key), NULL, now, &r), STORE_MISS);
        } else if (what < 97) {
            (void)juggle(s, 12, (unsigned)rng_below(&rng, 30), now);
        } else if (what < 99) {
            now++;
        } else if (rng_below(&rng, 20) == 0) {
            conf.lru.is_segmented = !conf.lru.is_segmented;
            store_set_lru(s, &conf.lru);
        }
        if (n % 500 == 0) {
            check_lists(12);
        }
    }
    ck_assert_uint_gt(totals_of(s).evictions, 0);
    ck_assert_uint_gt(totals_of(s).reclaimed, 0);
    ck_assert_uint_gt(class_of(s, 12, now).moves_within_lru, 0);
}
END_TEST

static void
add_pressure(TCase *tc)
{
    tcase_add_test(tc, without_eviction_only_the_dead_give_room);
    tcase_add_test(tc, all_held_means_no_memory);
    tcase_add_loop_test(tc, a_leaked_reference_is_repaired, 0, 2);
    tcase_add_loop_test(tc, evictions_are_told, 0, 2);
    tcase_add_loop_test(tc, locked_items_are_not_waited_for, 0, 2);
    tcase_add_test(tc, flat_mode_drains_the_lists);
    tcase_add_test(tc, old_lists_give_room_in_flat_mode);
    tcase_add_loop_test(tc, lists_agree_after_anything, 0, 3);
}

int
main(void)
{
    Suite *suite = suite_create("store_lru");
    TCase *tc = tcase_create("lru");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, stored_items_are_hot);
    tcase_add_test(tc, hot_items_read_twice_go_to_warm_later);
    tcase_add_test(tc, cold_items_go_to_warm_with_the_second_read);
    tcase_add_test(tc, a_read_never_waits_for_the_list);
    tcase_add_test(tc, warm_items_read_again_stay);
    tcase_add_test(tc, hot_keeps_its_share_of_the_bytes);
    tcase_add_test(tc, ages_bound_hot_and_warm);
    tcase_add_test(tc, a_step_moves_no_more_than_asked);
    tcase_add_loop_test(tc, memory_is_found_without_juggling, 0, 4);
    tcase_add_test(tc, what_has_expired_goes_in_the_background);
    tcase_add_test(tc, a_canary_that_is_read_survives);
    tcase_add_test(tc, canaries_survive_without_juggling);
    tcase_add_loop_test(tc, new_items_do_not_evict_each_other, 0, 48);
    tcase_add_test(tc, short_lived_items_are_not_evicted);
    tcase_add_test(tc, touched_items_leave_temp);
    add_pressure(tc);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
