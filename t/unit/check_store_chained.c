/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Values larger than the largest chunk: every byte of every size around the boundaries, and
 * append and prepend with any mix of plain and chained items.
 */
#include "fixture_store.h"

#define CHUNK_HEADER 48u
#define LIMIT (48 * MIB)
#define APPENDS 8000u

static const uint32_t chunk_sizes[] = {4096, 16384};

static void
open_with_chunks(uint32_t chunk_max)
{
    conf = default_conf(LIMIT);
    conf.chunk_max = chunk_max;
    conf.whole_pages = true;
    reopen();
}

static char
pattern_at(size_t i, unsigned seed)
{
    return (char)((i * 31 + (i >> 8) * 7 + seed) & 0xff);
}

static char *
pattern(size_t len, unsigned seed)
{
    char *p = malloc(len + 1);

    for (size_t i = 0; i < len; i++) {
        p[i] = pattern_at(i, seed);
    }
    return p;
}

static void
put_bytes(enum store_mode mode, const char *key, const char *value, size_t len)
{
    expect_ok(put_full(s, mode, key_of(key), value, len, 3, 0, 0, NOW, &r));
}

static void
expect_bytes(const char *key, const char *value, size_t len)
{
    struct item *it = hold(key, NOW);
    ck_assert_uint_eq(item_value_len(it), len);
    ck_assert_uint_eq(item_flags(it), 3);
    char *found = read_item(it);
    ck_assert(memcmp(found, value, len) == 0);
    free(found);
    store_release(s, it);
}

static void
check_size(size_t len)
{
    FREED char *value = pattern(len, (unsigned)len);

    put_bytes(STORE_SET, "k", value, len);
    expect_bytes("k", value, len);
}

FIXTURE(NULL, tear_down_store);

/* Whether a value starts to be chained, needs one chunk more, or has its CR LF split over
 * two, all happens within these. */
TEST_ROWS(every_byte_around_the_boundaries, chunk_sizes, NULL)
{
    uint32_t chunk_max = *row;
    uint32_t room = chunk_max - CHUNK_HEADER;

    open_with_chunks(chunk_max);
    for (unsigned n = 1; n <= 4; n++) {
        for (size_t len = n * room - 120; len <= n * (size_t)chunk_max + 20; len++) {
            check_size(len);
        }
    }
    for (size_t len = MIB - 100; len <= MIB - 72; len++) {
        check_size(len);
    }
    ck_assert_int_eq(put_sized(s, "k", MIB - 71, 0, NOW), STORE_TOO_LARGE);
    ck_assert_uint_eq(totals_of(s).count.evicted, 0);
}

TEST_ROWS(sizes_in_steps, chunk_sizes, NULL)
{
    open_with_chunks(*row);
    check_size(38892);
    for (size_t len = 200 * 1024; len < MIB - 100; len += 2048) {
        check_size(len);
    }
    drop("k", NOW);
    ck_assert_uint_eq(r.class_id, store_class_count(s));
    assert_empty(s);
}

/* Random access finds the same bytes as a walk. */
TEST_ROWS(any_offset_may_be_asked, chunk_sizes, NULL)
{
    size_t len = 50000;
    FREED char *value = pattern(len, 5);

    open_with_chunks(*row);
    put_bytes(STORE_SET, "k", value, len);
    struct item *it = hold("k", NOW);
    struct item_place place = {NULL, 0};
    for (size_t i = 0; i < len + 2; i++) {
        const char *p, *q;
        size_t n = item_bytes(it, i, &p);
        ck_assert_uint_eq(item_read(it, &place, i, &q), n);
        ck_assert_ptr_eq(p, q);

        ck_assert(n >= 1 && n <= *row - CHUNK_HEADER && i + n <= len + 2);
        ck_assert_int_eq(*p, i < len ? value[i] : "\r\n"[i - len]);
    }
    store_release(s, it);
}

/* 8000 pieces of 11 to 14 bytes, and the result to itself. */
TEST_LOOP(pieces_add_up, 4)
{
    bool append = _i % 2 == 0;
    enum store_mode mode = append ? STORE_APPEND : STORE_PREPEND;
    size_t size = 0, room = APPENDS * 14 + 16;
    FREED char *model = malloc(2 * room);

    open_with_chunks(chunk_sizes[_i / 2]);
    put_bytes(STORE_SET, "k", "", 0);
    for (unsigned i = 0; i < APPENDS; i++) {
        char piece[16];
        size_t len = 11 + i % 4;

        snprintf(piece, sizeof(piece), "%07u-------", i);
        put_bytes(mode, "k", piece, len);
        if (append) {
            memcpy(model + size, piece, len);
        } else {
            memmove(model + len, model, size);
            memcpy(model, piece, len);
        }
        size += len;
        if (i % 500 == 0) {
            expect_bytes("k", model, size);
        }
    }
    expect_bytes("k", model, size);
    put_bytes(mode, "k", model, size);
    memcpy(model + size, model, size);
    expect_bytes("k", model, 2 * size);
}

TEST_ROWS(plain_and_chained_mix, chunk_sizes, NULL)
{
    static const size_t sizes[] = {0, 1, 100, 4000, 4048, 4096, 9000, 20000, 70000};
    const unsigned count = sizeof(sizes) / sizeof(sizes[0]);

    open_with_chunks(*row);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            FREED char *old = pattern(sizes[a], a);
            FREED char *new = pattern(sizes[b], 100 + b);
            FREED char *both = malloc(sizes[a] + sizes[b] + 1);

            memcpy(both, old, sizes[a]);
            memcpy(both + sizes[a], new, sizes[b]);
            put_bytes(STORE_SET, "k", old, sizes[a]);
            put_bytes(STORE_APPEND, "k", new, sizes[b]);
            expect_bytes("k", both, sizes[a] + sizes[b]);
            put_bytes(STORE_SET, "k", new, sizes[b]);
            put_bytes(STORE_PREPEND, "k", old, sizes[a]);
            expect_bytes("k", both, sizes[a] + sizes[b]);
        }
    }
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
}

TEST_ROWS(joined_too_large_is_refused, chunk_sizes, NULL)
{
    FREED char *value = pattern(600 * 1024, 1);

    open_with_chunks(*row);
    put_bytes(STORE_SET, "k", value, 600 * 1024);
    ck_assert_int_eq(
        put_full(s, STORE_APPEND, key_of("k"), value, 600 * 1024, 0, 0, 0, NOW, &r),
        STORE_TOO_LARGE);
    expect_bytes("k", value, 600 * 1024);
    ck_assert_uint_eq(class_of(s, store_class_count(s), NOW).number, 1);
}

TEST_ROWS(chained_is_no_number, chunk_sizes, NULL)
{
    FREED char *value = malloc(20000);

    memset(value, ' ', 20000);
    value[0] = '7';
    open_with_chunks(*row);
    put_bytes(STORE_SET, "k", value, 20000);
    ck_assert_int_eq(count_by("k", true, 1), STORE_NOT_NUMERIC);
}

/* A full store replaces chained items by chained items for ever, every survivor intact. */
TEST_ROWS(full_store_keeps_turning_over, chunk_sizes, NULL)
{
    unsigned survivors = 0;

    open_with_chunks(*row);
    for (unsigned i = 0; i < 600; i++) {
        size_t len = 20000 + (i * 7919u) % 400000u;
        FREED char *value = pattern(len, i);
        put_bytes(STORE_SET, numbered("k", i), value, len);
    }
    ck_assert_uint_gt(totals_of(s).count.evicted, 100);
    ck_assert_uint_le(totals_of(s).malloced_bytes, LIMIT + STORE_CLASSES * MIB);
    for (unsigned i = 0; i < 600; i++) {
        size_t len = 20000 + (i * 7919u) % 400000u;
        FREED char *value = pattern(len, i);
        const char *key = numbered("k", i);
        if (is_there(s, key, NOW)) {
            expect_bytes(key, value, len);
            survivors++;
        }
    }
    ck_assert_uint_eq(survivors, totals_of(s).curr_items);
    ck_assert_uint_gt(survivors, 100);
}

/* One chunk for all that the store may hold: an item that can not be built leaves nothing
 * behind, and says so. */
TEST(broken_chain_is_returned)
{
    struct item *it;

    conf = default_conf(2 * MIB);
    conf.chunk_max = MIB / 2;
    conf.item_max = 4 * MIB;
    conf.can_evict = false;
    reopen();
    ck_assert_int_eq(store_reserve(s, key_of("k"), 0, 0, 3 * MIB, NOW, &it),
                     STORE_NO_MEMORY);
    ck_assert_ptr_null(it);
    assert_empty(s);
    ck_assert_uint_eq(class_of(s, store_class_count(s), NOW).count.outofmemory, 1);
}

/* A value written in pieces of any size, also backwards. */
TEST_ROWS(pieces_may_come_in_any_order, chunk_sizes, NULL)
{
    size_t len = 90000;
    FREED char *value = pattern(len, 77);
    struct item *it;

    open_with_chunks(*row);
    expect_ok(store_reserve(s, key_of("k"), 3, 0, (uint32_t)len, NOW, &it));
    for (size_t step = 7; step < 9000; step = step * 3 + 1) {
        for (size_t at = (len + 1) / step * step;; at -= step) {
            char *p;
            size_t n = item_space(it, at, &p);

            for (size_t i = 0; i < n && i < step; i++) {
                p[i] = at + i < len ? value[at + i] : "\r\n"[at + i - len];
            }
            if (at == 0) {
                break;
            }
        }
        fill_item(it, value, len);
    }
    expect_ok(store_commit(s, it, &(struct store_put){.mode = STORE_SET}, NOW, &r));
    expect_bytes("k", value, len);
}

/* The chunks of a small class are all taken by heads of chained items: small items push
 * those out rather than be refused for ever. */
TEST(heads_make_room_for_small_items)
{
    unsigned i = 0;

    conf = default_conf(0); /* one page a class */
    conf.chunk_max = 1024;
    conf.min_space = 464; /* 512 bytes, 2048 chunks, are the least */
    conf.growth_factor = 1.9;
    reopen();
    ck_assert_uint_eq(store_class_count(s), 2);
    while (class_of(s, 1, NOW).used_chunks < 2048 && i < 4000) {
        /* head and tail in the small class, one chunk in the large one */
        expect_ok(put_sized(s, numbered("k", i++), 1200, 0, NOW));
    }
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 2048);
    ck_assert_uint_eq(class_of(s, 1, NOW).number, 0);
    expect_ok(put_sized(s, "small", 10, 0, NOW));
    ck_assert(is_there(s, "small", NOW));
    ck_assert_uint_ge(totals_of(s).count.evicted, 1);
}

/* A reference keeps all chunks of a deleted item. */
TEST_ROWS(reference_keeps_the_chain, chunk_sizes, NULL)
{
    size_t len = 100000;
    FREED char *value = pattern(len, 9);

    open_with_chunks(*row);
    put_bytes(STORE_SET, "k", value, len);
    struct item *it = hold("k", NOW);
    drop("k", NOW);
    check_size(len);
    FREED char *found = read_item(it);
    ck_assert(memcmp(found, value, len) == 0);
    store_release(s, it);
    drop("k", NOW);
    assert_empty(s);
}
