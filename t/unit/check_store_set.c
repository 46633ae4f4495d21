/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * store_set: when what is stored is overwritten where it is, when it is not, and that it is all the
 * same to those who look.
 */
#include "fixture_store.h"

#include "base/rng.h"

#define KEYS 20
#define OPERATIONS 3000

static void
set_up(void)
{
    conf = default_conf(64 * MIB);
    conf.chunk_max = MIB / 2;
    conf.lru = segmented_lru();
    conf.lru.temp_ttl = 60;
    s = open_store(&conf);
}

static enum store_status
set_in(struct store *to, const char *key, const char *text, size_t len, uint32_t flags,
       uint32_t exptime, uint32_t now)
{
    struct store_value value = {
        .p = text, .len = (uint32_t)len, .flags = flags, .exptime = exptime};
    uint8_t class_id = 0;
    enum store_status status = store_set(to, key_of(key), &value, now, &class_id);
    ck_assert_int_eq(status == STORE_OK, class_id != 0);
    return status;
}

static void
set(const char *text, uint32_t now)
{
    expect_ok(set_in(s, "k", text, strlen(text), 5, STORE_NEVER, now));
}

/* Where the item lies. */
static struct item *
place_of(const char *key, uint32_t now)
{
    struct item *it = hold(key, now);
    store_release(s, it);
    return it;
}

static struct item *
place(uint32_t now)
{
    return place_of("k", now);
}

FIXTURE(set_up, tear_down_store);

TEST(overwrites_where_it_is)
{
    set("one", NOW);
    const struct item *first = place(NOW);
    expect_ok(set_in(s, "k", "other", 5, 1234567, NOW + 70, NOW + 1));
    ck_assert_ptr_eq(place(NOW + 1), first);
    ck_assert(has(s, "k", "other", NOW + 1));
    ck_assert_uint_eq(item_flags(first), 1234567);
    ck_assert_uint_eq(item_expires(first), NOW + 70);
    ck_assert_uint_eq(item_cas(first), 2);
    ck_assert_uint_eq(totals_of(s).count.total_items, 2);
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
    struct store_class_stats stats = class_of(s, item_class(first), NOW + 1);
    ck_assert_uint_eq(stats.used_chunks, 1);
    ck_assert_uint_eq(stats.requested_bytes, item_accounted(s, first));
    ck_assert_uint_eq(stats.item_bytes, item_accounted(s, first));
}

/* The list that it begins in, and its marks, are those of a new item. */
TEST(begins_anew)
{
    static const struct store_cut stale = {.marks_stale = true};
    struct item *it;
    set("one", NOW);
    for (unsigned i = 0; i < 3; i++) {
        it = hold("k", NOW + i);
        store_release(s, it);
    }
    expect_ok(store_delete(s, key_of("k"), &stale, NOW, &r));
    ck_assert(item_was_fetched(it) && item_is(it, ITEM_STALE) &&
              item_is(it, ITEM_ACTIVE));
    expect_ok(set_in(s, "k", "two", 3, 0, NOW + 30, NOW + 9));
    ck_assert_uint_eq(item_marks(it),
                      ITEM_LINKED | (unsigned)STORE_LIST_TEMP << ITEM_LIST_SHIFT);
    ck_assert_uint_eq(item_accessed(it), NOW + 9);
    set("six", NOW + 10);
    ck_assert_int_eq(item_list(it), STORE_LIST_HOT);
}

TEST(a_reader_keeps_what_it_holds)
{
    set("one", NOW);
    struct item *it = hold("k", NOW);
    set("two", NOW);
    ck_assert_ptr_ne(place(NOW), it);
    FREED char *text = read_item(it);
    ck_assert_str_eq(text, "one");
    store_release(s, it);
    ck_assert(has(s, "k", "two", NOW));
}

TEST(another_class_is_another_place)
{
    set("one", NOW);
    const struct item *first = place(NOW);
    char text[400];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    set(text, NOW);
    ck_assert_ptr_ne(place(NOW), first);
    ck_assert(has(s, "k", text, NOW));
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 0);
    set("two", NOW);
    ck_assert(has(s, "k", "two", NOW));
}

static uint64_t
seq_of(const char *key)
{
    struct key k = key_of(key);
    return atomic_load(
        &table_stripe(&s->table, table_hash(&s->table, k.p, k.len))->seq.number);
}

/* New, longer where it is, and in another class. */
TEST(takes_its_stripe_once)
{
    char text[400];
    memset(text, 'x', sizeof text);
    const size_t lengths[] = {1, 2, sizeof text};
    for (unsigned i = 0; i < ROWS(lengths); i++) {
        uint64_t before = seq_of("k");
        expect_ok(set_in(s, "k", text, lengths[i], 0, STORE_NEVER, NOW));
        ck_assert_uint_eq(seq_of("k"), before + 2);
    }
}

/* Of what is overwritten where it is, the slab allocator knows nothing: its lock is not taken. */
TEST(overwriting_takes_no_chunk)
{
    set("one", NOW);
    const struct item *at = place(NOW);
    const struct slab_class *c = &s->slab.classes[item_class(at)];
    uint64_t requested = c->requested_bytes;
    set("longer", NOW);
    set("", NOW);
    ck_assert_ptr_eq(place(NOW), at);
    ck_assert_uint_eq(c->requested_bytes, requested);
    ck_assert_uint_eq(class_of(s, item_class(at), NOW).requested_bytes,
                      item_accounted(s, at));
    drop("k", NOW);
}

TEST(a_chained_item_is_replaced)
{
    size_t len = MIB - 200;
    FREED char *text = malloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    set(text, NOW);
    ck_assert(has(s, "k", text, NOW));
    text[0] = 'y';
    set(text, NOW);
    ck_assert(has(s, "k", text, NOW));
    set("two", NOW);
    ck_assert(has(s, "k", "two", NOW));
}

TEST(a_binary_key_becomes_one_of_text)
{
    struct item *it;
    expect_ok(store_reserve(s, key_of("k"), 0, 0, 3, NOW, &it));
    fill_item(it, "one", 3);
    item_mark_binary_key(it);
    expect_ok(store_commit(s, it, &(struct store_put){.mode = STORE_SET}, NOW, &r));
    set("two", NOW);
    it = hold("k", NOW);
    ck_assert(!item_has_binary_key(it));
    store_release(s, it);
}

TEST(counts_by_size_stay_right)
{
    set("one", NOW);
    ck_assert(store_track_sizes(s, true));
    set("a longer value than before", NOW);
    set("one", NOW);
    ck_assert(store_track_sizes(s, false));
    set("a longer value than before", NOW);
    drop("k", NOW);
}

TEST(is_not_flushed_with_what_it_replaces)
{
    set("one", NOW);
    store_flush(s, 0, NOW);
    set("two", NOW);
    ck_assert(has(s, "k", "two", NOW));
    store_flush(s, 0, NOW);
    ck_assert(!is_there(s, "k", NOW));
}

TEST(what_expired_is_replaced)
{
    expect_ok(set_in(s, "k", "one", 3, 0, NOW + 1, NOW));
    expect_ok(set_in(s, "k", "two", 3, 0, NOW + 9, NOW + 2));
    ck_assert(has(s, "k", "two", NOW + 2));
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
}

TEST(too_large_changes_nothing)
{
    FREED char *text = calloc(1, MIB);
    set("one", NOW);
    ck_assert_int_eq(set_in(s, "k", text, MIB, 0, 0, NOW), STORE_TOO_LARGE);
    ck_assert(has(s, "k", "one", NOW));
}

TEST(no_memory_changes_nothing)
{
    conf.can_evict = false;
    conf.chunk_max = MIB;
    reopen_with(1);
    set("one", NOW);
    char text[400] = "";
    unsigned stored = 0;
    while (set_in(s, numbered("other", stored), text, sizeof text, 0, 0, NOW) ==
           STORE_OK) {
        stored++;
    }
    ck_assert_uint_gt(stored, 0);
    ck_assert_int_eq(set_in(s, "k", text, sizeof text, 0, 0, NOW), STORE_NO_MEMORY);
    ck_assert(has(s, "k", "one", NOW));
    /* not even where it is, which needs none */
    const char *old = "other0";
    text[0] = 'x';
    ck_assert_int_eq(set_in(s, old, text, sizeof text, 0, 0, NOW), STORE_NO_MEMORY);
    ck_assert_uint_eq(class_of(s, item_class(place_of(old, NOW)), NOW).count.outofmemory,
                      3);
    FREED char *there = read_item(place_of(old, NOW));
    ck_assert_int_eq(there[0], '\0');
}

/* ---- the same as in two steps ----------------------------------------------------------
 *
 * But for the tail of a flat list: what is dead there goes when memory is taken, and an item
 * that is overwritten takes none. */

static void
same_stats(struct store *a, struct store *b, uint32_t now)
{
    struct store_totals x = totals_of(a), y = totals_of(b);
    ck_assert_uint_eq(x.count.total_items, y.count.total_items);
    ck_assert_uint_eq(x.curr_items, y.curr_items);
    for (unsigned i = 1; i <= store_class_count(a); i++) {
        struct store_class_stats p = class_of(a, i, now), q = class_of(b, i, now);
        q.total_pages =
            p.total_pages; /* the old chunk is free before a new one is needed */
        q.total_chunks = p.total_chunks;
        q.free_chunks = p.free_chunks;
        expect(memcmp(&p, &q, sizeof p) == 0);
    }
}

TEST_LOOP(same_as_in_two_steps, 2 * STORE_LRU_POLICIES)
{
    struct rng rng;
    uint32_t now = NOW;
    char text[600];
    conf.lru.policy = (enum store_lru_policy)(_i % STORE_LRU_POLICIES);
    conf.inline_suffix = _i < STORE_LRU_POLICIES;
    reopen();
    struct store *other = open_store(&conf);
    rng_init(&rng, 7, (uint64_t)_i);
    memset(text, 'v', sizeof text);
    for (unsigned n = 0; n < OPERATIONS; n++) {
        const char *key = numbered("key", rng_below(&rng, KEYS));
        size_t len = (size_t)rng_below(&rng, rng_below(&rng, 3) == 0 ? sizeof text : 40);
        uint32_t flags = (uint32_t)rng_below(&rng, 2) * 77;
        bool expires = conf.lru.policy == STORE_LRU_SEGMENTED && rng_below(&rng, 3) == 0;
        uint32_t exptime =
            expires ? now + 1 + (uint32_t)rng_below(&rng, 90) : STORE_NEVER;
        switch (rng_below(&rng, 10)) {
        case 0:
            now++;
            break;
        case 1:
        case 2:
        case 3:
            ck_assert_int_eq(lookup(s, key, now), lookup(other, key, now));
            break;
        case 4:
            ck_assert_int_eq(store_delete(s, key_of(key), NULL, now, &r),
                             store_delete(other, key_of(key), NULL, now, &r));
            break;
        default:
            expect_ok(set_in(s, key, text, len, flags, exptime, now));
            expect_ok(put_full(other, STORE_SET, key_of(key), text, len, flags, exptime,
                               0, now, &r));
            break;
        }
        if (n % 500 == 0 && conf.lru.policy == STORE_LRU_SEGMENTED) {
            store_flush(s, 0, now);
            store_flush(other, 0, now);
        }
        same_stats(s, other, now);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        const char *key = numbered("key", i);
        struct item *a, *b;
        if (store_get(s, key_of(key), now, &a) == STORE_OK) {
            expect_ok(store_get(other, key_of(key), now, &b));
            ck_assert_uint_eq(item_cas(a), item_cas(b));
            ck_assert_uint_eq(item_flags(a), item_flags(b));
            ck_assert_uint_eq(item_expires(a), item_expires(b));
            ck_assert_uint_eq(item_value_len(a), item_value_len(b));
            store_release(s, a);
            store_release(other, b);
        }
    }
    store_destroy(&other);
}
