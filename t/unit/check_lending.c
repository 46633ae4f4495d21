/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Many classes in little memory: those without pages have their items in chunks of larger ones, and
 * get pages, and give the last one, when it is worth while.
 */
#include "fixture_store.h"

#define CHUNK_MAX 16384u

enum { SIZE_96 = 1, SIZE_104, SIZE_112, SIZE_128, SIZE_256, SIZE_512, SIZE_MAX_CHUNK };

static const uint32_t sizes[] = {96, 104, 112, 128, 256, 512};

static void
set_up(void)
{
    conf = default_conf(64 * MIB);
    conf.sizes = sizes;
    conf.size_count = sizeof(sizes) / sizeof(*sizes);
    conf.chunk_max = CHUNK_MAX;
    conf.inline_suffix = false;
    conf.is_lean = true;
    conf.can_reassign = true;
    conf.lends_chunks = true;
    conf.lru = segmented_lru();
    conf.lru.policy = STORE_LRU_S3FIFO;
    s = open_store(&conf);
}

static const char *
key_at(size_t i)
{
    static char key[16];

    snprintf(key, sizeof(key), "key%07zu", i);
    return key;
}

/* An item of `total` bytes. */
static void
put_total(size_t i, uint32_t total)
{
    uint64_t least = item_total(&conf, strlen(key_at(i)), 0, 0);

    expect_ok(put_sized(s, key_at(i), total - least, STORE_NEVER, NOW));
}

static unsigned
class_at(size_t i)
{
    struct item *it = hold(key_at(i), NOW);
    unsigned class_id = item_class(it);

    store_release(s, it);
    return class_id;
}

static unsigned
pages_of(unsigned class_id)
{
    return class_of(s, class_id, NOW).total_pages;
}

static unsigned
put_class(size_t i, uint32_t total)
{
    put_total(i, total);
    return class_at(i);
}

/* Until the memory is full. */
static size_t
fill_with(uint32_t total, size_t first)
{
    uint64_t before = totals_of(s).count.evicted;

    while (totals_of(s).count.evicted == before) {
        put_total(first++, total);
    }
    return first;
}

static void
move(int from, int to)
{
    ck_assert_int_eq(store_move_page(s, from, to), STORE_MOVE_OK);
    while (store_move_step(s, 100, NOW) != STORE_MOVE_IDLE) {
    }
    audit_store(s);
}

FIXTURE(set_up, tear_down_store);

TEST(each_has_pages_where_there_are_many)
{
    for (unsigned i = 0; i < conf.size_count; i++) {
        ck_assert_uint_eq(put_class(i, sizes[i]), i + 1);
    }
    audit_store(s);
}

/* Four pages for each class: one of 4 MB may take its first page without a need. */
TEST(few_have_pages_where_there_are_few)
{
    reopen_with(4);
    ck_assert_uint_eq(put_class(0, 128), SIZE_128);
    ck_assert_uint_eq(put_class(1, 112), SIZE_128);
    ck_assert_uint_eq(put_class(2, 104), SIZE_128);
    ck_assert_uint_eq(put_class(3, 96), SIZE_128);
    ck_assert_uint_eq(put_class(5, 129), SIZE_256);
    ck_assert_uint_eq(put_class(6, 500), SIZE_512); /* those are too small */
    ck_assert_uint_eq(put_class(7, 257), SIZE_512);
    ck_assert_uint_eq(totals_of(s).active_classes, 3);
    ck_assert_uint_eq(put_class(1, 105), SIZE_128);
    audit_store(s);
}

/* One that has no chunk in reach takes a page beyond the limit, as without lending. */
TEST(takes_a_page_beyond_the_limit_only_if_it_has_to)
{
    reopen_with(2);
    (void)fill_with(128, 0);
    ck_assert_uint_eq(put_class(1000000, 104), SIZE_128);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 2 * MIB);
    ck_assert_uint_eq(put_class(1000001, 500), SIZE_512);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 3 * MIB);
    audit_store(s);
}

TEST(preallocated_memory_is_not_spent_on_all_classes)
{
    conf.preallocates = true;
    reopen_with(5); /* 112, 128, 256, 512 and the largest can serve all */
    ck_assert_uint_eq(totals_of(s).active_classes, 1);
    (void)fill_with(128, 0);
    ck_assert_uint_eq(pages_of(SIZE_128), 4);
    ck_assert_uint_eq(put_class(1000000, 500), SIZE_MAX_CHUNK);
    ck_assert(class_of(s, SIZE_512, NOW).is_wanted);
    move(SIZE_128, SIZE_512);
    ck_assert(!class_of(s, SIZE_512, NOW).is_wanted);
    ck_assert_uint_eq(put_class(1000001, 500), SIZE_512);
    ck_assert_uint_eq(put_class(1000002, 200), SIZE_512);
    ck_assert_uint_eq(class_at(1000000), SIZE_MAX_CHUNK);
    audit_store(s);
}

/* A class that no other one can serve well gets a page at the next look. */
TEST(the_automover_serves_what_is_wanted)
{
    struct store_automove automove = {.level = 1, .ratio = 0.8, .window = 3};

    conf.preallocates = true;
    reopen_with(5);
    store_set_automove(s, &automove);
    (void)fill_with(128, 0);
    (void)store_automove_step(s, NOW);
    ck_assert(!totals_of(s).is_moving);
    ck_assert_uint_eq(put_class(1000000, 500), SIZE_MAX_CHUNK);
    ck_assert(store_automove_step(s, NOW));
    while (store_move_step(s, 100, NOW) != STORE_MOVE_IDLE) {
    }
    ck_assert_uint_eq(put_class(1000000, 500), SIZE_512);
    ck_assert_uint_eq(pages_of(SIZE_128), 3);
    audit_store(s);
}

/* Of the keys a quarter is looked at, and of those the main queue's. */
TEST(counts_what_leaves_and_what_returns)
{
    struct store_class_stats c;
    size_t end;

    reopen_with(2);
    end = fill_with(512, 0);
    for (size_t i = end; i < 20 * end; i++) {
        put_total(i, 512);
        (void)class_at(i); /* a read: to the main queue */
    }
    c = class_of(s, SIZE_512, NOW);
    ck_assert_uint_gt(c.losses, 2 * end);
    ck_assert_uint_lt(c.losses, 8 * end);
    ck_assert_uint_eq(c.count.returns, 0);
    for (size_t i = 18 * end; i < 19 * end; i++) {
        put_total(i, 512);
    }
    c = class_of(s, SIZE_512, NOW);
    ck_assert_uint_gt(c.count.returns, end / 8);
    ck_assert_uint_lt(c.count.returns, end / 2);
}

TEST(preallocated_memory_may_be_too_little)
{
    char err[128];

    conf.preallocates = true;
    conf.limit_bytes = 4 * MIB;
    ck_assert_ptr_null(store_create(&conf, err, sizeof(err)));
    unsigned megabytes;
    ck_assert_int_eq(
        sscanf(err, "preallocation (-L, -e) needs -m %u or more: ", &megabytes), 1);
    conf.limit_bytes = (megabytes - 1) * MIB;
    ck_assert_ptr_null(store_create(&conf, err, sizeof(err)));
    conf.limit_bytes = megabytes * MIB;
    struct store *enough = store_create(&conf, err, sizeof(err));
    ck_assert_ptr_nonnull(enough);
    store_destroy(&enough);
}

TEST(the_last_page_goes_where_another_class_serves)
{
    size_t end;

    reopen_with(2);
    end = fill_with(112, 0);
    ck_assert_uint_eq(slab_host(&s->slab, SIZE_112), 0);
    move(SIZE_112, SIZE_128);
    ck_assert_uint_eq(slab_host(&s->slab, SIZE_112), SIZE_128);
    move(SIZE_112, SIZE_128);
    ck_assert_uint_eq(pages_of(SIZE_112), 0);
    ck_assert_uint_eq(slab_host(&s->slab, SIZE_96), 0); /* it would be too large */
    ck_assert_uint_eq(put_class(end, 112), SIZE_128);
    ck_assert_int_eq(store_move_page(s, SIZE_112, SIZE_128), STORE_MOVE_NO_SPARE);
    ck_assert_int_eq(store_move_page(s, -1, SIZE_96), STORE_MOVE_OK);
}

static unsigned
best_of(unsigned class_id)
{
    struct store_class_stats c = class_of(s, class_id, NOW);

    return slab_best_class(&s->slab, class_id, c.requested_bytes / c.used_chunks);
}

/* What is stored again goes to the class that it is for. */
TEST(a_class_opens_for_its_items)
{
    size_t end;

    reopen_with(2);
    put_total(0, 128);
    end = fill_with(104, 1);
    ck_assert_uint_eq(class_at(end - 1), SIZE_128);
    ck_assert_uint_eq(best_of(SIZE_128), SIZE_104);
    move(SIZE_128, SIZE_104);
    ck_assert_uint_eq(put_class(end - 1, 101), SIZE_104);
    ck_assert_uint_eq(put_class(end, 96), SIZE_104);
    audit_store(s);
}

TEST(more_memory_opens_all)
{
    reopen_with(2);
    (void)fill_with(128, 0);
    ck_assert_uint_eq(put_class(1000000, 104), SIZE_128);
    ck_assert(store_set_limit(s, 64 * MIB));
    ck_assert_uint_eq(put_class(1000001, 104), SIZE_104);
}

/* Items that have grown where they are leave with more bytes than they came with. */
TEST(items_that_grow_are_for_their_class)
{
    for (size_t i = 0; i < 2000; i++) {
        put_total(i, 113);
        put_total(i, 128);
        if (i >= 100) {
            drop(key_at(i - 100), NOW);
        }
    }
    ck_assert_uint_eq(best_of(SIZE_128), SIZE_128);
}

TEST(only_what_another_one_serves_gives_its_last_page)
{
    reopen_with(2);
    ck_assert_uint_eq(put_class(0, 256), SIZE_256);
    (void)put_class(1, 128);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(store_move_page(s, SIZE_256, SIZE_128), STORE_MOVE_NO_SPARE);
        ck_assert_uint_eq(put_class(2 + i, 256), SIZE_256);
    }
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 2 * MIB);
}

static void
try_to_move(int from, int to)
{
    if (store_move_page(s, from, to) == STORE_MOVE_OK) {
        while (store_move_step(s, 100, NOW) != STORE_MOVE_IDLE) {
        }
    }
}

/* In a circle that gives pages to the largest class, and takes first ones. */
TEST(first_pages_have_a_limit)
{
    static const uint32_t near[] = {96, 120, 144, 176};

    conf.sizes = near;
    conf.size_count = sizeof(near) / sizeof(*near);
    reopen_with(2);
    (void)fill_with(176, 0);
    for (unsigned i = 0; i < 20; i++) {
        (void)put_class(1000000 + i, 96);
        try_to_move(4, 3);
        try_to_move(2, 3);
        try_to_move(3, 4);
        try_to_move(3, 4);
    }
    ck_assert_uint_ge(totals_of(s).malloced_bytes, 3 * MIB);
    ck_assert_uint_le(totals_of(s).malloced_bytes, (2 + store_class_count(s)) * MIB);
    ck_assert_uint_ge(put_class(2000000, 96), 2);
    audit_store(s);
}

/* Of the memory that there was under a higher limit they get none. */
TEST(first_pages_forget_a_higher_limit)
{
    uint64_t most = (2 + store_class_count(s)) * MIB;

    reopen_with(8);
    (void)fill_with(128, 0);
    ck_assert(store_set_limit(s, 2 * MIB));
    while (totals_of(s).malloced_bytes > 2 * MIB) {
        move(SIZE_128, 0);
    }
    ck_assert_uint_eq(s->slab.most_bytes, most);
    ck_assert(store_set_limit(s, 2 * MIB));
    put_total(1000000, 500);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 3 * MIB);
    ck_assert(store_set_limit(s, 2 * MIB));
    ck_assert_uint_eq(s->slab.most_bytes, most);
    audit_store(s);
}

TEST(what_is_left_of_a_class_says_nothing)
{
    static const struct store_automove automove = {
        .level = 1, .ratio = 0.8, .window = 10};

    reopen_with(2);
    (void)fill_with(112, 0);
    store_set_automove(s, &automove);
    move(SIZE_112, SIZE_128);
    ck_assert_int_eq(store_move_page(s, SIZE_112, SIZE_128), STORE_MOVE_OK);
    ck_assert(!slab_is_losing(&s->slab, SIZE_112, false)); /* it gets no chunk any more */
    (void)store_automove_step(s, NOW + 1);
    ck_assert(!s->automover.worth.has_last);
    while (store_move_step(s, 100, NOW) != STORE_MOVE_IDLE) {
    }
    (void)store_automove_step(s, NOW + 2);
    ck_assert(s->automover.worth.has_last);
}
