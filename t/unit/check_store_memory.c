/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Size classes, accounted bytes, the memory limit, eviction and reclaim: the numbers that
 * clients' test-suites count on. And what happens when the system has no memory.
 */
#include "fixture_store.h"

#define DASH_M_VALUE 8192u
#define BIG_VALUE 1048326u /* 1 MiB - 250 */
#define MIDDLE_VALUE 66560u
#define MIDDLE_CLASS 31u
#define LARGEST_CLASS 42u

static enum store_status
put_numbered(const char *prefix, unsigned i, size_t len, uint32_t exptime, uint32_t now)
{
    return put_sized(s, numbered(prefix, i), len, exptime, now);
}

/* ---- classes ------------------------------------------------------------------------- */

static const struct {
    uint32_t size, per_page;
} default_classes[] = {
    {96, 10922}, {120, 8738},  {152, 6898}, {192, 5461}, {240, 4369}, {304, 3449},
    {384, 2730}, {480, 2184},  {600, 1747}, {752, 1394}, {944, 1110}, {1184, 885},
    {1480, 708}, {1856, 564},  {2320, 451}, {2904, 361}, {3632, 288}, {4544, 230},
    {5680, 184}, {7104, 147},  {8880, 118}, {11104, 94}, {13880, 75}, {17352, 60},
    {21696, 48}, {27120, 38},  {33904, 30}, {42384, 24}, {52984, 19}, {66232, 15},
    {82792, 12}, {103496, 10}, {129376, 8}, {161720, 6}, {202152, 5}, {252696, 4},
    {315872, 3}, {394840, 2},  {493552, 2}, {616944, 1}, {771184, 1}, {1048576, 1},
};

static void
expect_classes(unsigned count, uint32_t last_size, uint32_t last_per_page)
{
    ck_assert_uint_eq(store_class_count(s), count);
    for (unsigned i = 1; i <= count; i++) {
        struct store_class_stats c = class_of(s, i, NOW);
        uint32_t size = i < count ? default_classes[i - 1].size : last_size;
        uint32_t per_page = i < count ? default_classes[i - 1].per_page : last_per_page;

        ck_assert_uint_eq(c.chunk_size, size);
        ck_assert_uint_eq(c.chunks_per_page, per_page);
        ck_assert_uint_eq(c.total_pages, 0);
    }
}

FIXTURE(set_up_store, tear_down_store);

/* A factor so small that sizes are the same, up to the last class. */
TEST_LOOP(each_size_has_a_chunk_that_holds_it, 3)
{
    static const double factors[] = {1.000001, 1.01, 1.02};

    conf.growth_factor = factors[_i];
    reopen();
    for (uint32_t bytes = 1; bytes <= SLAB_SMALL_MAX; bytes++) {
        unsigned id = slab_class_of(&s->slab, bytes);
        ck_assert_uint_ge(s->slab.classes[id].chunk_size, bytes);
    }
    for (unsigned i = 0; i < 100; i++) {
        expect_ok(put_numbered("k", i, 7 * i, STORE_NEVER, NOW));
    }
    audit_store(s);
}

TEST(class_table_is_the_known_one)
{
    expect_classes(LARGEST_CLASS, MIB, 1);
    conf.chunk_max = MIB / 2;
    reopen();
    expect_classes(39, MIB / 2, 2);
    conf.chunk_max = 4096;
    reopen();
    expect_classes(17, 4096, 256);
    conf.chunk_max = 16384;
    reopen();
    expect_classes(23, 16384, 64);
}

TEST(listed_sizes_are_rounded_and_closed)
{
    const uint32_t sizes[] = {97, 200, 1001};
    const uint32_t expected[] = {104, 200, 1008, MIB};

    conf.sizes = sizes;
    conf.size_count = 3;
    reopen();
    ck_assert_uint_eq(store_class_count(s), 4);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(class_of(s, i + 1, NOW).chunk_size, expected[i]);
    }
}

TEST(tiny_factor_stays_within_the_ids)
{
    conf.growth_factor = 1.05;
    reopen();
    ck_assert_uint_eq(store_class_count(s), STORE_CLASS_MAX);
    ck_assert_uint_eq(class_of(s, STORE_CLASS_MAX, NOW).chunk_size, MIB);
    expect_ok(put_sized(s, "k", MIB / 2, 0, NOW));
}

TEST(impossible_configurations_are_refused)
{
    static const uint32_t falling[] = {200, 100};
    struct store_conf bad[7];
    char err[128];

    for (unsigned i = 0; i < 7; i++) {
        bad[i] = conf;
        err[0] = '\0';
    }
    bad[0].growth_factor = 1.0;
    bad[1].chunk_max = 100;
    bad[2].item_max = MIB + 8;
    bad[3].hash_power = 11;
    bad[4].hash_power = 33;
    bad[5].sizes = falling;
    bad[5].size_count = 2;
    bad[6].growth_factor = -1;
    for (unsigned i = 0; i < 7; i++) {
        ck_assert_ptr_null(store_create(&bad[i], err, sizeof(err)));
        ck_assert_uint_gt(strlen(err), 0);
    }
}

TEST(item_total_decides_class_and_refusal)
{
    /* 48 + 8 + 1 + 1 + " 0 21\r\n" 7 + n + 2 */
    expect_ok(put_sized(s, "k", 96 - 67, 0, NOW));
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 1);
    ck_assert_uint_eq(totals_of(s).item_bytes, 96);
    expect_ok(put_sized(s, "k", 96 - 66, 0, NOW));
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 0);
    ck_assert_uint_eq(class_of(s, 2, NOW).used_chunks, 1);
    ck_assert_uint_eq(class_of(s, 2, NOW).requested_bytes, 97);
    /* 48 + 8 + 1 + 1 + " 0 1048504\r\n" 12 + n + 2 = 1 MiB */
    expect_ok(put_sized(s, "k", MIB - 72, 0, NOW));
    struct store_totals t = totals_of(s);
    ck_assert_uint_eq(t.item_bytes, MIB);
    ck_assert_uint_eq(t.curr_items, 1);
    ck_assert_int_eq(put_sized(s, "k", MIB - 71, 0, NOW), STORE_TOO_LARGE);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
}

TEST(total_without_suffix_counts_flags)
{
    conf.inline_suffix = false;
    reopen();
    expect_ok(put_sized(s, "a", 1, 0, NOW));
    ck_assert_uint_eq(totals_of(s).item_bytes, 61);
    put_full(s, STORE_SET, key_of("a"), "x", 1, 5, 0, 0, NOW, &r);
    ck_assert_uint_eq(totals_of(s).item_bytes, 65);
    conf.inline_suffix = true;
    reopen();
    expect_ok(put_sized(s, "a", 1, 0, NOW));
    ck_assert_uint_eq(totals_of(s).item_bytes, 67);
    put_full(s, STORE_SET, key_of("a"), "x", 1, 12345, 0, 0, NOW, &r);
    ck_assert_uint_eq(totals_of(s).item_bytes, 71);
}

TEST(ten_small_items_request_800)
{
    put_range("key", 0, 10, 10, 0, NOW);
    ck_assert_uint_eq(class_of(s, 1, NOW).requested_bytes, 800);
}

TEST(growing_sizes_all_fit)
{
    double size = 2;

    for (unsigned i = 0; i < 69; i++, size *= 1.2) {
        for (unsigned n = 0; n < 10; n++) {
            expect_ok(put_numbered("grow", i * 10 + n, (size_t)size, 0, NOW));
        }
    }
    ck_assert_uint_gt(totals_of(s).active_classes, 30);
}

static void
put_a_and_b(void)
{
    expect_ok(put_sized(s, "a", BIG_VALUE, 0, NOW));
    expect_ok(put_sized(s, "b", BIG_VALUE, 0, NOW));
}

/* ---- limit and eviction -------------------------------------------------------------- */

TEST(largest_items_fill_64_pages)
{
    for (unsigned i = 0; i < 101; i++) {
        expect_ok(put_numbered("item_", i, BIG_VALUE, 0, NOW));
        ck_assert_uint_eq(totals_of(s).count.evicted, i < 64 ? 0 : i - 63);
    }
    struct store_totals t = totals_of(s);
    ck_assert_uint_eq(t.count.evicted, 37);
    ck_assert_uint_eq(t.count.evicted_unfetched, 37);
    ck_assert_uint_eq(t.curr_items, 64);
    ck_assert_uint_eq(t.malloced_bytes, 64 * MIB);
    ck_assert_uint_eq(class_of(s, LARGEST_CLASS, NOW).total_pages, 64);
    for (unsigned i = 0; i < 101; i++) {
        ck_assert_int_eq(is_there(s, numbered("item_", i), NOW), i >= 37);
    }
}

TEST(every_set_evicts_one_when_full)
{
    reopen_with(3);
    put_range("item_", 0, 40, MIDDLE_VALUE, 0, NOW);
    struct store_class_stats c = class_of(s, MIDDLE_CLASS, NOW);
    ck_assert_uint_eq(c.count.evicted, 4);
    ck_assert_uint_eq(c.total_pages, 3);
    ck_assert_uint_eq(c.number, 36);
    store_reset_stats(s);
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW).count.evicted, 0);
    put_range("more_", 0, 40, MIDDLE_VALUE, 0, NOW + 7);
    c = class_of(s, MIDDLE_CLASS, NOW + 9);
    ck_assert_uint_eq(c.count.evicted, 40);
    ck_assert_uint_eq(c.count.evicted_nonzero, 0);
    ck_assert_uint_eq(c.count.evicted_time, 0);
    ck_assert_uint_eq(c.age, 2);
    put_range("item_", 0, 40, MIDDLE_VALUE, NOW + 600, NOW + 10);
    c = class_of(s, MIDDLE_CLASS, NOW + 10);
    ck_assert_uint_eq(c.count.evicted, 80);
    ck_assert_uint_eq(c.count.evicted_nonzero, 4);
    ck_assert_uint_eq(totals_of(s).count.evicted, 80);
}

TEST(use_saves_from_eviction_once_a_minute)
{
    reopen_with(2);
    put_a_and_b();
    ck_assert(is_there(s, "a", NOW + 60)); /* too early to move */
    ck_assert_uint_eq(class_of(s, LARGEST_CLASS, NOW + 60).age, 60);
    ck_assert(is_there(s, "a", NOW + 61));
    expect_ok(put_sized(s, "c", BIG_VALUE, 0, NOW + 61));
    ck_assert(is_there(s, "a", NOW + 61));
    ck_assert(!is_there(s, "b", NOW + 61));
    ck_assert_uint_eq(class_of(s, LARGEST_CLASS, NOW + 61).count.evicted_time, 61);
}

TEST_LOOP(without_eviction_the_first_refusal_lasts, 2)
{
    unsigned stored = 0;

    conf.can_evict = false;
    reopen_with((unsigned)_i + 1);
    while (put_numbered("dash", stored, DASH_M_VALUE, 0, NOW) == STORE_OK) {
        stored++;
    }
    ck_assert_uint_ge(stored, 118);
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_int_eq(put_numbered("none", i, DASH_M_VALUE, 0, NOW), STORE_NO_MEMORY);
    }
    ck_assert_uint_eq(class_of(s, 21, NOW).count.outofmemory, 11);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
    ck_assert_uint_eq(count_range("dash", 0, stored, NOW), stored);
}

TEST(charges_go_beyond_32_bits)
{
    unsigned refused = 0;

    conf.limit_bytes = UINT64_C(4098) * MIB;
    conf.initial_malloced = UINT64_C(4294967328);
    conf.can_evict = false;
    reopen();
    ck_assert_uint_eq(totals_of(s).limit_bytes, UINT64_C(4297064448));
    ck_assert_uint_eq(totals_of(s).malloced_bytes, UINT64_C(4294967328));
    ck_assert_uint_eq(totals_of(s).active_classes, 0);
    for (unsigned i = 0; i < 5; i++) {
        refused += put_numbered("k", i, 400 * 1024, 0, NOW) != STORE_OK;
    }
    ck_assert_uint_eq(refused, 1);
    ck_assert_uint_eq(totals_of(s).active_classes, 1);
}

TEST(pages_are_charged_whole_or_as_used)
{
    expect_ok(put_sized(s, "k", 1, 0, NOW));
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 1048512);
    conf.whole_pages = true;
    reopen();
    expect_ok(put_sized(s, "k", 1, 0, NOW));
    ck_assert_uint_eq(totals_of(s).malloced_bytes, MIB);
}

TEST(first_page_is_free_of_the_limit)
{
    conf.limit_bytes = 0;
    reopen();
    expect_ok(put_sized(s, "k", 1, 0, NOW));
    expect_ok(put_sized(s, "l", 1000, 0, NOW));
    ck_assert_uint_eq(totals_of(s).active_classes, 2);
}

TEST(raised_limit_lets_a_class_grow)
{
    reopen_with(1);
    put_a_and_b();
    ck_assert_uint_eq(totals_of(s).count.evicted, 1);
    ck_assert(store_set_limit(s, 2 * MIB));
    ck_assert_uint_eq(totals_of(s).limit_bytes, 2 * MIB);
    expect_ok(put_sized(s, "c", BIG_VALUE, 0, NOW));
    ck_assert_uint_eq(totals_of(s).count.evicted, 1);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, 2 * MIB);
}

TEST(held_tail_items_are_passed_over)
{
    reopen_with(2);
    put_a_and_b();
    struct item *held = hold("a", NOW);
    expect_ok(put_sized(s, "c", BIG_VALUE, 0, NOW));
    ck_assert(is_there(s, "a", NOW));
    ck_assert(!is_there(s, "b", NOW));
    ck_assert_uint_eq(totals_of(s).count.reflocked, 1);
    store_release(s, held);
}

TEST(all_held_means_no_memory)
{
    struct item *held[2];

    reopen_with(2);
    put_a_and_b();
    expect_ok(store_get(s, key_of("a"), NOW, &held[0]));
    expect_ok(store_get(s, key_of("b"), NOW, &held[1]));
    ck_assert_int_eq(put_sized(s, "c", BIG_VALUE, 0, NOW), STORE_NO_MEMORY);
    store_release(s, held[0]);
    store_release(s, held[1]);
    expect_ok(put_sized(s, "c", BIG_VALUE, 0, NOW));
    ck_assert_uint_eq(totals_of(s).count.evicted, 1);
}

/* An append needs a second chunk while its own item, whose stripe it holds, is the only
 * possible victim. */
TEST(append_does_not_evict_itself)
{
    reopen_with(1);
    expect_ok(put_sized(s, "a", BIG_VALUE, 0, NOW));
    ck_assert_int_eq(put(s, STORE_APPEND, "a", "b", 0, NOW), STORE_NO_MEMORY);
    ck_assert(is_there(s, "a", NOW));
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 0);
}

/* ---- reclaim ------------------------------------------------------------------------- */

TEST(expired_tail_is_used_again)
{
    put_range("a", 0, 10, MIDDLE_VALUE, NOW + 2, NOW);
    uint64_t malloced = totals_of(s).malloced_bytes;
    put_range("b", 0, 10, MIDDLE_VALUE, NOW + 6, NOW + 4);
    ck_assert_uint_eq(totals_of(s).malloced_bytes, malloced);
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 10);
    ck_assert_uint_eq(totals_of(s).count.expired_unfetched, 10);
    ck_assert_uint_eq(totals_of(s).curr_items, 10);
}

TEST(tail_waits_one_second_longer_than_readers)
{
    put(s, STORE_SET, "a", "1", NOW + 2, NOW);
    put(s, STORE_SET, "b", "1", 0, NOW + 2);
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 0);
    put(s, STORE_SET, "c", "1", 0, NOW + 3);
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 1);
}

TEST(replaced_expired_item_is_reclaimed)
{
    expect_ok(put_sized(s, "key", MIDDLE_VALUE, NOW + 1, NOW));
    uint64_t requested = class_of(s, MIDDLE_CLASS, NOW).requested_bytes;
    expect_ok(put_sized(s, "key", 66570, 0, NOW + 3));
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW + 3).count.reclaimed, 1);
    drop("key", NOW + 3);
    expect_ok(put_sized(s, "key", MIDDLE_VALUE, 0, NOW + 3));
    ck_assert_uint_eq(class_of(s, MIDDLE_CLASS, NOW + 3).requested_bytes, requested);
}

TEST_LOOP(flushed_tail_is_reclaimed_once, 2)
{
    conf.use_cas = _i == 0;
    reopen();
    put(s, STORE_SET, "a", "1", 0, NOW);
    store_flush(s, 0, NOW + 2);
    put(s, STORE_SET, "b", "1", 0, NOW + 2);
    ck_assert_uint_eq(totals_of(s).count.reclaimed, 1);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
    ck_assert_int_eq(lookup(s, "a", NOW + 2), STORE_MISS);
}

/* ---- the system has no memory -------------------------------------------------------- */

/* A little of everything; whatever can not be done says so. */
static void
exercise(struct store *st, bool chained)
{
    enum store_status status[5];
    for (unsigned i = 0; i < 40; i++) {
        status[0] =
            put_sized(st, numbered("n", i), chained ? 30000 : 80u << (i / 4), 0, NOW);
        ck_assert(status[0] == STORE_OK || status[0] == STORE_NO_MEMORY);
    }
    status[0] = put(st, STORE_SET, "number", "9", 0, NOW);
    status[1] = arith(st, "number", true, 1, NOW, number, &digits, &r);
    status[2] = put(st, STORE_SET, "text", "a", 0, NOW);
    status[3] = put(st, STORE_APPEND, "text", "b", 0, NOW);
    status[4] = put_sized(st, "text", 5000, 0, NOW);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert(status[i] == STORE_OK || status[i] == STORE_NO_MEMORY ||
                  status[i] == STORE_MISS || status[i] == STORE_NOT_STORED);
    }
}

static void
delete_all(struct store *st)
{
    for (unsigned i = 0; i < 40; i++) {
        ck_assert_int_ne(store_delete(st, key_of(numbered("n", i)), NULL, NOW, &r),
                         STORE_BUSY);
    }
    ck_assert_int_ne(store_delete(st, key_of("number"), NULL, NOW, &r), STORE_BUSY);
    ck_assert_int_ne(store_delete(st, key_of("text"), NULL, NOW, &r), STORE_BUSY);
}

TEST_LOOP(every_request_for_memory_may_fail, 2)
{
    bool is_chained = _i == 1;
    bool is_good = false;
    char err[128];
    long n;

    conf.chunk_max = is_chained ? 4096 : MIB;
    for (n = 1; !is_good; n++) {
        SCOPED(store_destroy)
        struct store *st = store_create_failing(&conf, n, err, sizeof(err));

        if (st == NULL) {
            ck_assert_int_le(n, 4);
            ck_assert_uint_gt(strlen(err), 0);
            continue;
        }
        exercise(st, is_chained);
        is_good = totals_of(st).malloc_fails == 0;
        ck_assert_uint_le(totals_of(st).malloc_fails, 1);
        delete_all(st);
        assert_empty(st);
    }
    ck_assert_int_gt(n, 6);
}

TEST(growth_waits_for_memory)
{
    put_range("g", 0, 6145, 1, 0, NOW);
    atomic_store(&s->mem.fail_in, 1);
    ck_assert(!store_step(s, 1));
    ck_assert_uint_eq(totals_of(s).hash_power, 12);
    ck_assert_uint_eq(totals_of(s).malloc_fails, 1);
    ck_assert(store_step(s, 1));
    ck_assert(totals_of(s).is_expanding);
    ck_assert_uint_eq(totals_of(s).hash_bytes, (4096 + 8192) * sizeof(void *));
    while (store_step(s, 1000)) {
    }
    ck_assert_uint_eq(totals_of(s).hash_power, 13);
    ck_assert_uint_eq(totals_of(s).hash_bytes, 8192 * sizeof(void *));
    ck_assert(!totals_of(s).is_expanding);
    ck_assert_uint_eq(count_range("g", 0, 6145, NOW), 6145);
}
