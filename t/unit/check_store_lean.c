/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an item takes: a header of 32 bytes, flags only where they are not 0, and links of 32 bits,
 * however much memory there is. What it is charged for: this, or what upstream's takes.
 */
#include "fixture_store.h"

#define CHUNK_MAX 16384u
#define GIB (UINT64_C(1) << 30)

static const uint32_t all_flags[] = {0, 1, 255, 65536, UINT32_MAX};

/* The four ways to charge, then with S3-FIFO. */
#define WAYS 4

static void
open_way(int way)
{
    conf.use_cas = way % 2 == 0;
    conf.is_lean = way / 2 == 0;
    conf.inline_suffix = false;
    conf.chunk_max = CHUNK_MAX;
    conf.can_reassign = true;
    reopen();
}

static void
set_up(void)
{
    set_up_store();
}

static void
set_flags(const char *key, uint32_t flags, size_t len)
{
    static char value[100000];
    uint8_t class_id;

    memset(value, 'v', sizeof(value));
    expect_ok(
        store_set(s, key_of(key),
                  &(struct store_value){.p = value, .len = (uint32_t)len, .flags = flags},
                  NOW, &class_id));
}

static void
assert_flags(const char *key, uint32_t flags, size_t len)
{
    struct item *it = hold(key, NOW);

    ck_assert_uint_eq(item_flags(it), flags);
    ck_assert_uint_eq(item_value_len(it), len);
    ck_assert(item_is_terminated(it));
    store_release(s, it);
}

static void
end(void)
{
    audit_store(s);
    tear_down_store();
}

FIXTURE(set_up, end);

TEST(an_item_is_charged_what_it_takes)
{
    open_way(0);
    expect_ok(put(s, STORE_SET, "key", "12345", STORE_NEVER, NOW));
    ck_assert_uint_eq(class_of(s, 1, NOW).requested_bytes, 32 + 8 + 3 + 5 + 2);
    set_flags("other", 7, 5);
    ck_assert_uint_eq(class_of(s, 1, NOW).requested_bytes, 50 + 32 + 8 + 5 + 5 + 2 + 4);
}

TEST(or_what_upstreams_takes)
{
    open_way(2);
    expect_ok(put(s, STORE_SET, "key", "12345", STORE_NEVER, NOW));
    ck_assert_uint_eq(class_of(s, 1, NOW).requested_bytes, 48 + 8 + 3 + 1 + 5 + 2);
    set_flags("other", 7, 5);
    ck_assert_uint_eq(class_of(s, 1, NOW).requested_bytes,
                      67 + 48 + 8 + 5 + 1 + 4 + 5 + 2);
}

/* Each size of an item in a chunk of just that size: nothing lies behind its end. */
TEST_LOOP(flags_lie_in_the_chunk, WAYS)
{
    open_way(_i);
    for (size_t len = 0; len < 300; len++) {
        set_flags(numbered("n", len), UINT32_MAX, len);
        set_flags(numbered("z", len), 0, len);
    }
    for (size_t len = 0; len < 300; len++) {
        assert_flags(numbered("n", len), UINT32_MAX, len);
        assert_flags(numbered("z", len), 0, len);
    }
}

/* A set that overwrites in place, from any flags to any others; in a chunk, and in many. */
TEST_LOOP(sets_change_flags, WAYS * 2)
{
    const size_t lens[] = {10, 13, 14, 20};
    size_t more = _i < WAYS ? 0 : 40000;

    open_way(_i % WAYS);
    for (size_t a = 0; a < ROWS(all_flags); a++) {
        for (size_t b = 0; b < ROWS(all_flags); b++) {
            for (size_t n = 0; n < ROWS(lens); n++) {
                set_flags("k", all_flags[a], more + 14);
                set_flags("k", all_flags[b], more + lens[n]);
                assert_flags("k", all_flags[b], more + lens[n]);
            }
        }
    }
}

TEST_LOOP(other_commands_keep_flags, WAYS * 2)
{
    size_t len = _i < WAYS ? 10 : 30000;
    struct store_seen seen;
    struct store_cut cut = {.marks_stale = true};
    struct item *it;

    open_way(_i % WAYS);
    set_flags("k", 77, len);
    expect_ok(put(s, STORE_APPEND, "k", "more", STORE_NEVER, NOW));
    expect_ok(put(s, STORE_PREPEND, "k", "first", STORE_NEVER, NOW));
    assert_flags("k", 77, len + 9);
    expect_ok(store_touch(s, key_of("k"), NOW + 100, NOW, &r));
    expect_ok(store_delete(s, key_of("k"), &cut, NOW, &r));
    expect_ok(store_look(s, key_of("k"), &(struct store_look){.is_use = true}, NOW, &seen,
                         &it));
    ck_assert(seen.is_stale);
    ck_assert_uint_eq(seen.flags, 77);
    store_release(s, it);
    assert_flags("k", 77, len + 9);
    cut = (struct store_cut){.empties = true, .client_flags = 5};
    expect_ok(store_delete(s, key_of("k"), &cut, NOW, &r));
    assert_flags("k", 5, 0);
}

TEST_LOOP(counters_keep_flags, WAYS)
{
    uint8_t class_id;
    const struct store_value value = {.p = "99", .len = 2, .flags = UINT32_MAX};

    open_way(_i);
    expect_ok(store_set(s, key_of("n"), &value, NOW, &class_id));
    expect_ok(count_by("n", true, 1)); /* longer by a digit: another item */
    assert_flags("n", UINT32_MAX, 3);
    expect_ok(count_by("n", false, 50)); /* where it is */
    assert_flags("n", UINT32_MAX, 3);
}

/* What a page moves with its items. */
TEST_LOOP(a_move_keeps_flags, WAYS)
{
    open_way(_i);
    for (unsigned i = 0; i < 3000; i++) {
        set_flags(numbered("m", i), all_flags[i % ROWS(all_flags)], 1000);
    }
    set_flags("long", 9, 50000);
    for (unsigned i = 0; i < 3000; i += 2) {
        drop(numbered("m", i), NOW);
    }
    for (unsigned n = 0; n < 2; n++) {
        ck_assert_int_eq(store_move_page(s, -1, 0), STORE_MOVE_OK);
        while (store_move_step(s, 1000, NOW) != STORE_MOVE_IDLE) {
        }
        audit_store(s);
    }
    ck_assert_uint_gt(totals_of(s).move_rescues, 0);
    for (unsigned i = 1; i < 3000; i += 2) {
        assert_flags(numbered("m", i), all_flags[i % ROWS(all_flags)], 1000);
    }
    assert_flags("long", 9, 50000);
}

/* ---- links ----------------------------------------------------------------------------- */

/* From 32 GiB on units are larger, and so are steps between sizes of chunks. */
static const struct {
    const char *label;
    uint64_t gib;
    uint32_t unit;
} units[] = {{"1 GiB", 1, 8},    {"31 GiB", 31, 8},  {"32 GiB", 32, 16},
             {"63 GiB", 63, 16}, {"64 GiB", 64, 32}, {"200 GiB", 200, 64}};

TEST_ROWS(links_reach_all_memory, units, row->label)
{
    conf.limit_bytes = row->gib * GIB;
    conf.is_lean = true;
    conf.growth_factor = 1.05;
    reopen();
    ck_assert_uint_eq(UINT64_C(1) << s->slab.pages.range.shift, row->unit);
    for (unsigned id = 1; id <= s->slab.class_count; id++) {
        ck_assert_uint_eq(s->slab.classes[id].chunk_size % row->unit, 0);
    }
    put_range("i", 0, 3000, 100, STORE_NEVER, NOW);
    ck_assert_uint_eq(count_range("i", 0, 3000, NOW), 3000);
    drop_range("i", 0, 1500, NOW);
    put_range("i", 0, 1500, 50, STORE_NEVER, NOW);
    ck_assert_uint_eq(count_range("i", 0, 3000, NOW), 3000);
    /* The last byte that may be memory. */
    const struct link_range *range = &s->table.range;
    const struct item *last =
        (struct item *)(void *)(range->origin + ((size_t)UINT32_MAX << range->shift));
    ck_assert_uint_eq(link_to(range, last), UINT32_MAX);
    ck_assert_ptr_eq(link_item(range, UINT32_MAX), last);
    ck_assert_uint_ge((uint64_t)((const char *)last - range->origin), conf.limit_bytes);
}

/* -m of a petabyte, as some write for "all": units as for what the machine has. */
TEST(a_limit_beyond_the_machine_costs_nothing)
{
    conf.limit_bytes = UINT64_C(1) << 50;
    conf.machine_bytes = 16 * GIB;
    reopen();
    ck_assert_uint_eq(s->slab.pages.range.shift, 3);
    put_range("i", 0, 3000, 100, STORE_NEVER, NOW);
    ck_assert_uint_eq(count_range("i", 0, 3000, NOW), 3000);
    /* What links do not reach is as if the limit were reached. */
    ck_assert_uint_le(s->slab.pages.arena_bytes, (uint64_t)UINT32_MAX << 3);
    ck_assert(!store_set_limit(s, 33 * GIB));
    ck_assert(!slab_has_reached_limit(&s->slab));
    s->slab.pages.arena_left = 1;
    put_range("j", 0, 3000, 1000, STORE_NEVER, NOW);
    ck_assert(slab_has_reached_limit(&s->slab));
    ck_assert(is_there(s, "j2999", NOW));
}

/* Sizes that become one in these units are one class: the series has to go on all the same. */
TEST(a_small_growth_factor_ends_in_large_units)
{
    conf.growth_factor = 1.000001;
    conf.limit_bytes = 40 * GIB;
    reopen();
    const struct slab *sl = &s->slab;
    ck_assert_uint_eq(sl->pages.range.shift, 4);
    ck_assert_uint_eq(sl->class_count, STORE_CLASS_MAX);
    for (unsigned id = 2; id <= sl->class_count; id++) {
        ck_assert_uint_gt(sl->classes[id].chunk_size, sl->classes[id - 1].chunk_size);
    }
}

TEST(the_largest_chunk_is_a_multiple_of_the_unit)
{
    char err[128];

    conf.limit_bytes = 40 * GIB;
    conf.item_max = conf.chunk_max = 16384 + 8;
    ck_assert_ptr_null(store_create(&conf, err, sizeof(err)));
    ck_assert_str_eq(err,
                     "the largest chunk is not a multiple of the step between sizes "
                     "that so much memory needs: 16 bytes above 32 GiB, 32 above 64");
}

/* ---- addresses ------------------------------------------------------------------------- */

TEST(the_limit_may_be_raised)
{
    ck_assert(store_set_limit(s, 30 * GIB));
    ck_assert(!store_set_limit(s, 33 * GIB));
    ck_assert_uint_eq(totals_of(s).limit_bytes, 30 * GIB);
    ck_assert(store_set_limit(s, 64 * MIB));
}

/* Pages that were given back count, when no other is left. */
TEST(pages_on_the_shelf_are_room)
{
    conf.can_reassign = true;
    reopen();
    put_range("i", 0, 4000, 10000, STORE_NEVER, NOW);
    drop_range("i", 0, 4000, NOW);
    s->slab.pages.arena_left = 0;
    while (store_move_page(s, -1, 0) == STORE_MOVE_OK) {
        while (store_move_step(s, 1000, NOW) != STORE_MOVE_IDLE) {
        }
    }
    ck_assert(store_set_limit(s, 8 * MIB));
    ck_assert(slab_has_reached_limit(&s->slab));
    ck_assert(store_set_limit(s, 64 * MIB));
    ck_assert(!slab_has_reached_limit(&s->slab));
    put_range("i", 0, 2000, 10000, STORE_NEVER, NOW);
    ck_assert_uint_eq(count_range("i", 0, 2000, NOW), 2000);
}

/* The system has no addresses for more, as under ulimit -v. */
TEST(with_few_addresses_the_limit_may_not_be_raised)
{
    char err[128];

    store_destroy(&s);
    s = store_create_failing(&conf, 2, err, sizeof(err));
    ck_assert_msg(s != NULL, "%s", err);
    ck_assert(store_set_limit(s, 64 * MIB));
    ck_assert(!store_set_limit(s, GIB));
    put_range("i", 0, 2000, 10000, STORE_NEVER, NOW);
    ck_assert_uint_eq(count_range("i", 0, 2000, NOW), 2000);
}

/* Nor when they would count as locked memory. */
TEST(least_addresses_are_those_of_the_limit)
{
    conf.reserves_least = true;
    reopen();
    ck_assert_uint_le(s->slab.pages.arena_bytes, 64 * MIB + STORE_CLASSES * MIB);
    ck_assert(!store_set_limit(s, GIB));
    for (unsigned i = 0; i < 2000; i++) { /* each class has its page all the same */
        expect_ok(put_sized(s, numbered("i", i), i * 40, STORE_NEVER, NOW));
    }
}
