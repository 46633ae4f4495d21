/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What comes back after a restart, and that all of it works on.
 */
#include <sys/wait.h>

#include "check_restart.h"

#define MANY 3000u

static void
assert_value(struct store *s, const char *key, size_t len, uint32_t now)
{
    FREED char *value = malloc(len + 1);

    memset(value, 'x', len);
    value[len] = '\0';
    ck_assert_msg(has(s, key, value, now), "%s of %zu bytes", key, len);
}

FIXTURE(set_up_life, tear_down_life);

TEST(starts_empty_at_first)
{
    begin_life(NOW);
    struct stat st;

    ck_assert_int_eq(l.opened, RESTART_NEW);
    assert_empty(l.s);
    ck_assert_int_eq(stat(file, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_uint_ge(st.st_size, LIMIT);
}

/* Sizes around the borders of classes and chunks. */
static const size_t lengths[] = {0,     1,     30,    31,    32,     33,    100,   900,
                                 4000,  16200, 16310, 16320, 16330,  16384, 20000, 32650,
                                 32700, 40000, 70000, 99999, 100000, 300000};
#define LENGTHS (sizeof(lengths) / sizeof(*lengths))

TEST_LOOP(brings_all_sizes_back, 6)
{
    struct store_totals before, after;

    conf.use_cas = _i % 2 == 0;
    conf.inline_suffix = _i / 2 == 0;
    conf.is_lean = _i / 2 == 2;
    begin_life(NOW);
    for (size_t i = 0; i < LENGTHS; i++) {
        expect_ok(put_sized(l.s, numbered("key", i), lengths[i], 0, NOW));
    }
    before = totals_of(l.s);
    for (unsigned round = 0; round < 3; round++) {
        restart_life(NOW + round);
        after = totals_of(l.s);
        ck_assert_uint_eq(after.curr_items, LENGTHS);
        ck_assert_uint_eq(after.item_bytes, before.item_bytes);
        ck_assert_uint_eq(after.malloced_bytes, before.malloced_bytes);
        for (size_t i = 0; i < LENGTHS; i++) {
            assert_value(l.s, numbered("key", i), lengths[i], NOW + round);
        }
    }
}

TEST(keeps_what_an_item_carries)
{
    begin_life(NOW);
    struct store_look look = {.is_use = false};
    struct store_cut cut = {.marks_stale = true, .touches = true, .exptime = NOW + 50};
    struct store_seen seen;
    struct store_result r;
    struct item *it;

    expect_ok(put_full(l.s, STORE_SET, key_of("a"), "v", 1, 4000000000u, NOW + 1000, 0,
                       NOW, &r));
    expect_ok(store_reserve(l.s, (struct key){"\0 \xff", 3}, 0, 0, 0, NOW, &it));
    fill_item(it, "", 0);
    item_mark_binary_key(it);
    expect_ok(store_commit(l.s, it, &(struct store_put){.new_cas = 999}, NOW, &r));
    expect_ok(put(l.s, STORE_SET, "stale", "v", 0, NOW));
    expect_ok(store_delete(l.s, key_of("stale"), &cut, NOW, &r));
    ck_assert(is_there(l.s, "a", NOW + 3));

    restart_life(NOW + 10);
    expect_ok(store_look(l.s, key_of("a"), &look, NOW + 10, &seen, &it));
    ck_assert_uint_eq(item_flags(it), 4000000000u);
    ck_assert_uint_eq(item_expires(it), NOW + 1000);
    ck_assert_uint_eq(item_cas(it), 1);
    ck_assert(seen.was_fetched && !seen.is_stale);
    ck_assert_uint_eq(seen.last_access, NOW);
    store_release(l.s, it);
    expect_ok(store_look(l.s, (struct key){"\0 \xff", 3}, &look, NOW + 10, &seen, &it));
    ck_assert(item_has_binary_key(it));
    ck_assert_uint_eq(item_cas(it), 999);
    store_release(l.s, it);
    expect_ok(store_look(l.s, key_of("stale"), &look, NOW + 10, &seen, &it));
    ck_assert(seen.is_stale);
    ck_assert_uint_eq(item_expires(it), NOW + 50);
    store_release(l.s, it);

    expect_ok(put_full(l.s, STORE_SET, key_of("next"), "v", 1, 0, 0, 0, NOW + 10, &r));
    ck_assert_uint_eq(r.cas, 4); /* numbers go on */
}

TEST(keeps_whose_items_are)
{
    struct store_owner_stats before[STORE_OWNERS], after;
    struct store_result r;
    struct item *it;

    begin_life(NOW);
    for (unsigned i = 0; i < 10; i++) {
        expect_ok(store_reserve(l.s, key_of(numbered("key", i)), 0, 0, i, NOW, &it));
        fill_item(it, "0123456789", i);
        item_set_owner(it, (uint8_t)(i % STORE_OWNERS));
        expect_ok(store_commit(l.s, it, &(struct store_put){.mode = STORE_SET}, NOW, &r));
    }
    for (unsigned i = 0; i < STORE_OWNERS; i++) {
        store_owner_stats(l.s, i, &before[i]);
        ck_assert_uint_ge(before[i].items, 2);
    }
    restart_life(NOW + 10);
    for (unsigned i = 0; i < STORE_OWNERS; i++) {
        store_owner_stats(l.s, i, &after);
        ck_assert_uint_eq(after.items, before[i].items);
        ck_assert_uint_eq(after.bytes, before[i].bytes);
    }
}

TEST_LOOP(what_is_gone_stays_so, 2)
{
    struct store_result r;

    conf.use_cas = _i == 0;
    begin_life(NOW);
    expect_ok(put(l.s, STORE_SET, "flushed", "v", 0, NOW));
    store_flush(l.s, 0, NOW);
    expect_ok(put(l.s, STORE_SET, "deleted", "v", 0, NOW + 5));
    expect_ok(put_sized(l.s, "large", 50000, 0, NOW + 5));
    expect_ok(put(l.s, STORE_SET, "short", "v", NOW + 20, NOW + 5));
    expect_ok(put_sized(l.s, "short large", 50000, NOW + 20, NOW + 5));
    expect_ok(put(l.s, STORE_SET, "here", "v", NOW + 21, NOW + 5));
    expect_ok(store_delete(l.s, key_of("deleted"), NULL, NOW + 5, &r));
    expect_ok(store_delete(l.s, key_of("large"), NULL, NOW + 5, &r));
    save_life(NOW + 8);
    begin_next_life(NOW + 20); /* twelve seconds later */
    ck_assert_uint_eq(totals_of(l.s).curr_items, 1);
    ck_assert_int_eq(lookup(l.s, "flushed", NOW + 20), STORE_MISS);
    ck_assert_int_eq(lookup(l.s, "deleted", NOW + 20), STORE_MISS);
    ck_assert_int_eq(lookup(l.s, "large", NOW + 20), STORE_MISS);
    ck_assert_int_eq(lookup(l.s, "short", NOW + 20), STORE_MISS);
    expect_ok(lookup(l.s, "here", NOW + 20));
    ck_assert_int_eq(lookup(l.s, "here", NOW + 21), STORE_GONE_EXPIRED);
    assert_empty(l.s);
    ck_assert_uint_eq(totals_of(l.s).flush_time, NOW);
}

TEST(a_flush_to_come_still_comes)
{
    begin_life(NOW);

    expect_ok(put(l.s, STORE_SET, "k", "v", 0, NOW));
    store_flush(l.s, NOW + 30, NOW);
    restart_life(NOW + 10);
    ck_assert(has(l.s, "k", "v", NOW + 29));
    restart_life(NOW + 29);
    ck_assert_int_eq(lookup(l.s, "k", NOW + 30), STORE_GONE_FLUSHED);
    expect_ok(put(l.s, STORE_SET, "k", "w", 0, NOW + 31));
    ck_assert(has(l.s, "k", "w", NOW + 31));
}

static unsigned
list_keys(struct store *s, unsigned class_id, enum store_list list, char *text)
{
    unsigned n = 0;

    *text = '\0';
    for (const struct item *it = s->lru.classes[class_id].lists[list].head; it != NULL;
         it = link_item(&s->table.range, it->next), n++) {
        strncat(text, item_key(it), item_key_len(it));
        strcat(text, " ");
    }
    return n;
}

TEST(keeps_the_lists_and_their_order)
{
    begin_life(NOW);
    char before[STORE_LISTS][200], after[200];

    for (unsigned i = 0; i < 20; i++) {
        const char *key = numbered("k", i);
        expect_ok(put_sized(l.s, key, 1, i % 5 == 0 ? NOW + 10 : 0, NOW + i / 2));
        if (i % 3 == 0) {
            ck_assert(is_there(l.s, key, NOW + i / 2) && is_there(l.s, key, NOW + i / 2));
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        (void)store_juggle(l.s, 1, 3, NOW + 10);
    }
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        ck_assert_uint_gt(list_keys(l.s, 1, list, before[list]), 0);
    }
    restart_life(NOW + 9);
    for (unsigned list = 0; list < STORE_LISTS; list++) {
        (void)list_keys(l.s, 1, list, after);
        ck_assert_str_eq(after, before[list]);
    }
    conf.lru.policy = STORE_LRU_FLAT;
    restart_life(NOW + 9);
    ck_assert_uint_eq(list_keys(l.s, 1, STORE_LIST_COLD, after), 20);
    conf.lru.policy = STORE_LRU_SEGMENTED;
    restart_life(NOW + 9);
    ck_assert_uint_eq(list_keys(l.s, 1, STORE_LIST_COLD, after), 20);
}

static void
fill_up(struct store *s, unsigned round, uint32_t now)
{
    for (unsigned i = 0; i < MANY; i++) {
        char key[24];

        snprintf(key, sizeof(key), "r%u-%u", round % 2, i);
        expect_ok(
            put_sized(s, key, (size_t)i * 7919 % 30000, i % 7 == 0 ? now + 900 : 0, now));
    }
}

TEST_LOOP(a_full_store_works_on, 4)
{
    conf.can_reassign = _i == 0;
    conf.lru.policy = _i < 2    ? STORE_LRU_SEGMENTED
                      : _i == 2 ? STORE_LRU_FLAT
                                : STORE_LRU_S3FIFO;
    begin_life(NOW);
    for (unsigned round = 0; round < 4; round++) {
        fill_up(l.s, round, NOW + 10 * round);
        ck_assert_uint_gt(totals_of(l.s).count.evicted, 0);
        uint64_t items = totals_of(l.s).curr_items;
        restart_life(NOW + 10 * round);
        ck_assert_uint_eq(totals_of(l.s).curr_items, items);
        ck_assert_uint_le(totals_of(l.s).malloced_bytes, LIMIT);
    }
    store_flush(l.s, 0, NOW + 50);
    restart_life(NOW + 50);
    assert_empty(l.s);
}

/* Also what looks like the items of another life. */
TEST_LOOP(what_lay_in_the_file_is_of_no_interest, 3)
{
    begin_life(NOW);

    fill_up(l.s, 0, NOW);
    end_life();
    if (_i > 0) {
        FREED char *junk = malloc(LIMIT + 4096);

        memset(junk, _i == 1 ? 0xff : 0x55, LIMIT + 4096);
        spew(file, junk, LIMIT + 4096);
    }
    begin_new_life();
    assert_empty(l.s);
    expect_ok(put_sized(l.s, "k", 100, 0, NOW));
    restart_life(NOW);
    ck_assert_uint_eq(totals_of(l.s).curr_items, 1);
    fill_up(l.s, 1, NOW);
    for (int id = 1; id <= (int)store_class_count(l.s); id++) {
        if (store_move_page(l.s, id, id % 5 + 1) == STORE_MOVE_OK) {
            while (store_move_step(l.s, 1000, NOW) == STORE_MOVE_WORKING) {
            }
        }
    }
    ck_assert_uint_gt(totals_of(l.s).pages_moved, 0);
    fill_up(l.s, 0, NOW + 1);
    restart_life(NOW + 1);
}

TEST(pages_of_the_pool_and_on_their_way)
{
    begin_life(NOW);

    fill_up(l.s, 0, NOW);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(store_move_page(l.s, -1, 0), STORE_MOVE_OK);
        while (store_move_step(l.s, 1000, NOW) == STORE_MOVE_WORKING) {
        }
    }
    uint64_t pool = totals_of(l.s).pool_pages;
    ck_assert_uint_gt(pool, 0);
    restart_life(NOW + 1);
    ck_assert_uint_eq(totals_of(l.s).pool_pages, pool);

    ck_assert_int_eq(store_move_page(l.s, -1, 1), STORE_MOVE_OK);
    ck_assert_int_ne(store_move_step(l.s, 7, NOW + 1), STORE_MOVE_IDLE);
    restart_life(NOW + 1); /* the move is forgotten */
    ck_assert(!totals_of(l.s).is_moving);
    ck_assert_int_eq(store_move_page(l.s, -1, 1), STORE_MOVE_OK);
    while (store_move_step(l.s, 1000, NOW + 1) == STORE_MOVE_WORKING) {
    }
    fill_up(l.s, 1, NOW + 1);
    audit_store(l.s);
}

/* A client that stopped in the middle of its value, or that never took its reply. */
TEST(what_is_held_at_the_end_is_no_harm)
{
    begin_life(NOW);
    struct store_result r;
    struct item *small, *large, *read, *deleted;

    expect_ok(put_sized(l.s, "read", 50000, 0, NOW));
    expect_ok(put_sized(l.s, "deleted", 50000, 0, NOW));
    expect_ok(store_reserve(l.s, key_of("small"), 0, 0, 10, NOW, &small));
    expect_ok(store_reserve(l.s, key_of("large"), 0, 0, 50000, NOW, &large));
    expect_ok(store_get(l.s, key_of("read"), NOW, &read));
    expect_ok(store_get(l.s, key_of("deleted"), NOW, &deleted));
    expect_ok(store_delete(l.s, key_of("deleted"), NULL, NOW, &r));
    ck_assert(try_save(NOW));
    begin_next_life(NOW);
    ck_assert_uint_eq(totals_of(l.s).curr_items, 1);
    assert_value(l.s, "read", 50000, NOW);
    expect_ok(store_delete(l.s, key_of("read"), NULL, NOW, &r));
    assert_empty(l.s);
}

TEST(the_table_keeps_its_size)
{
    begin_life(NOW);

    for (unsigned i = 0; i < 7000; i++) {
        expect_ok(put_sized(l.s, numbered("k", i), 1, 0, NOW));
    }
    while (store_step(l.s, 1000)) {
    }
    ck_assert_uint_eq(totals_of(l.s).hash_power, 13);
    for (unsigned i = 100; i < 7000; i++) {
        struct store_result r;
        expect_ok(store_delete(l.s, key_of(numbered("k", i)), NULL, NOW, &r));
    }
    restart_life(NOW);
    ck_assert_uint_eq(totals_of(l.s).hash_power, 13);
    ck_assert_uint_eq(totals_of(l.s).curr_items, 100);
    conf.hash_power = 15;
    restart_life(NOW);
    ck_assert_uint_eq(totals_of(l.s).hash_power, 15);
    conf.hash_power = 12;
    restart_life(NOW);
    ck_assert_uint_eq(totals_of(l.s).hash_power, 15);
}

TEST(sizes_are_counted_again)
{
    begin_life(NOW);

    ck_assert(store_track_sizes(l.s, true));
    expect_ok(put(l.s, STORE_SET, "k", "v", 0, NOW));
    restart_life(NOW); /* not counted now: audited */
    expect_ok(put(l.s, STORE_SET, "k", "w", 0, NOW));
}

TEST(tells_what_the_last_process_said)
{
    begin_life(NOW);

    restart_life(NOW + 3);
    struct restart_times times = restart_times(l.r);
    ck_assert_int_eq(times.started, WALL);
    ck_assert_int_eq(times.stopped, WALL + NOW + 3);
    ck_assert_uint_eq(times.now, NOW + 3);
    ck_assert_uint_eq(times.last_gid, 77);
}

TEST(an_end_without_saving_leaves_nothing)
{
    begin_life(NOW);

    expect_ok(put(l.s, STORE_SET, "k", "v", 0, NOW));
    restart_life(NOW);
    ck_assert(has(l.s, "k", "v", NOW));
    begin_new_life();
    assert_empty(l.s);
}

/* ---- a load that is interrupted --------------------------------------------------------- */

enum { CHILD_WAS_KILLED = 40, CHILD_HAS_SAVED };

/* Only one page of the memory may be touched; how many more of them are, before the process ends. */
static char *touched;
static unsigned touches_left;

static void
on_touch(int signal, siginfo_t *info, void *ctx)
{
    char *page = (char *)info->si_addr - (uintptr_t)info->si_addr % STORE_PAGE_BYTES;

    (void)signal;
    (void)ctx;
    if (touches_left-- == 0) {
        _exit(CHILD_WAS_KILLED);
    }
    must(touched == NULL || mprotect(touched, STORE_PAGE_BYTES, PROT_NONE) == 0);
    must(mprotect(page, STORE_PAGE_BYTES, PROT_READ | PROT_WRITE) == 0);
    touched = page;
}

/* A process that ends when it goes to another page for the n-th time. */
static int
load_until(unsigned n)
{
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO};

        l.conf = conf;
        must(sigaction(SIGSEGV, &action, NULL) == 0);
        must(restart_open(&l.r, file, &l.conf, l.err, sizeof l.err) == RESTART_FOUND);
        l.s = open_store(&l.conf);
        touches_left = n;
        must(mprotect(l.conf.memory, LIMIT, PROT_NONE) == 0);
        must(restart_load(l.r, l.s, &l.conf, NOW, l.err, sizeof l.err) == RESTART_FOUND);
        must(mprotect(l.conf.memory, LIMIT, PROT_READ | PROT_WRITE) == 0);
        must(try_save(NOW));
        _exit(CHILD_HAS_SAVED);
    }
    int status;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Each in another place, with what the one before has left. */
TEST_LOOP(a_load_that_is_interrupted_is_repeated, 3)
{
    unsigned n = 0;
    int ended;

    conf.lru.policy = _i == 0   ? STORE_LRU_SEGMENTED
                      : _i == 1 ? STORE_LRU_FLAT
                                : STORE_LRU_S3FIFO;
    begin_life(NOW);
    for (size_t i = 0; i < LENGTHS; i++) {
        expect_ok(put_sized(l.s, numbered("key", i), lengths[i], 0, NOW));
        expect_ok(put(l.s, STORE_SET, numbered("short", i), "v", NOW + 1, NOW));
    }
    (void)store_juggle(l.s, 1, 5, NOW);
    save_life(NOW);
    end_life();
    while ((ended = load_until(n)) == CHILD_WAS_KILLED) {
        n += 1 + n / 8;
    }
    ck_assert_int_eq(ended, CHILD_HAS_SAVED);
    ck_assert_uint_gt(n, 50);
    begin_next_life(NOW + 1);
    ck_assert_uint_eq(totals_of(l.s).curr_items, LENGTHS);
    for (size_t i = 0; i < LENGTHS; i++) {
        assert_value(l.s, numbered("key", i), lengths[i], NOW + 1);
    }
}

static void
note_servers(unsigned servers[], unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        servers[i] = slab_class_of(&l.s->slab, 60 + 40 * i);
    }
}

/* A class without pages puts its items where it did. */
TEST(classes_lend_as_before)
{
    static const uint32_t near[] = {104, 112, 128, 4096};
    unsigned before[100], after[100];

    conf.sizes = near;
    conf.lends_chunks = true;
    begin_life(NOW);
    note_servers(before, 100);
    expect_ok(put_sized(l.s, "middle", 60, 0, NOW));
    expect_ok(put_sized(l.s, "large", 3000, 0, NOW));
    note_servers(after, 100);
    ck_assert_mem_ne(after, before, sizeof before);
    memcpy(before, after, sizeof before);
    restart_life(NOW);
    note_servers(after, 100);
    ck_assert_mem_eq(after, before, sizeof before);
}

/* What is done by several at a time. */
TEST_LOOP(many_threads_bring_back_what_one_does, 2)
{
    conf.threads = _i == 0 ? 3 : 200;
    conf.limit_bytes = 16 * MIB;
    begin_life(NOW);
    for (unsigned round = 0; round < 2; round++) {
        fill_up(l.s, round, NOW + round);
        restart_life(NOW + round);
    }
    ck_assert_uint_gt(totals_of(l.s).curr_items, 100);
}
