/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Values larger than the largest chunk: every byte of every size around the boundaries, and
 * append and prepend with any mix of plain and chained items.
 */
#include "check_store.h"

#define CHUNK_HEADER 48u
#define LIMIT (48 * MIB)
#define APPENDS 8000u

static const uint32_t chunk_sizes[] = {4096, 16384};

static struct store *s;
static struct store_conf conf;

static void
tear_down(void)
{
    store_destroy(&s);
}

static void
open_with_chunks(uint32_t chunk_max)
{
    conf = default_conf(LIMIT);
    conf.chunk_max = chunk_max;
    conf.whole_pages = true;
    s = open_store(&conf);
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
    struct store_result r;

    ck_assert_int_eq(put_full(s, mode, key_of(key), value, len, 3, 0, 0, NOW, &r),
                     STORE_OK);
}

static void
expect_bytes(const char *key, const char *value, size_t len)
{
    struct item *it;
    char *found;

    ck_assert_int_eq(store_get(s, key_of(key), NOW, &it), STORE_OK);
    ck_assert_uint_eq(item_value_len(it), len);
    ck_assert_uint_eq(item_flags(it), 3);
    found = read_item(it);
    ck_assert(memcmp(found, value, len) == 0);
    free(found);
    store_release(s, it);
}

static void
check_size(size_t len)
{
    char *value = pattern(len, (unsigned)len);

    put_bytes(STORE_SET, "k", value, len);
    expect_bytes("k", value, len);
    free(value);
}

/* Whether a value starts to be chained, needs one chunk more, or has its CR LF split over
 * two, all happens within these. */
START_TEST(every_byte_around_the_boundaries)
{
    uint32_t chunk_max = chunk_sizes[_i];
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
    ck_assert_uint_eq(totals_of(s).evictions, 0);
}
END_TEST

START_TEST(sizes_in_steps)
{
    struct store_result r;

    open_with_chunks(chunk_sizes[_i]);
    check_size(38892);
    for (size_t len = 200 * 1024; len < MIB - 100; len += 2048) {
        check_size(len);
    }
    ck_assert_int_eq(store_delete(s, key_of("k"), NULL, NOW, &r), STORE_OK);
    ck_assert_uint_eq(r.class_id, store_class_count(s));
    assert_empty(s);
}
END_TEST

/* Random access finds the same bytes as a walk. */
START_TEST(any_offset_may_be_asked)
{
    size_t len = 50000;
    char *value = pattern(len, 5);
    struct item *it;

    open_with_chunks(chunk_sizes[_i]);
    put_bytes(STORE_SET, "k", value, len);
    ck_assert_int_eq(store_get(s, key_of("k"), NOW, &it), STORE_OK);
    for (size_t i = 0; i < len + 2; i++) {
        const char *p;
        size_t n = item_bytes(it, i, &p);

        ck_assert(n >= 1 && n <= chunk_sizes[_i] - CHUNK_HEADER && i + n <= len + 2);
        ck_assert_int_eq(*p, i < len ? value[i] : "\r\n"[i - len]);
    }
    store_release(s, it);
    free(value);
}
END_TEST

/* 8000 pieces of 11 to 14 bytes, and the result to itself. */
START_TEST(pieces_add_up)
{
    bool append = _i % 2 == 0;
    enum store_mode mode = append ? STORE_APPEND : STORE_PREPEND;
    size_t size = 0, room = APPENDS * 14 + 16;
    char *model = malloc(2 * room);

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
    free(model);
}
END_TEST

START_TEST(plain_and_chained_mix)
{
    static const size_t sizes[] = {0, 1, 100, 4000, 4048, 4096, 9000, 20000, 70000};
    const unsigned count = sizeof(sizes) / sizeof(sizes[0]);

    open_with_chunks(chunk_sizes[_i]);
    for (unsigned a = 0; a < count; a++) {
        for (unsigned b = 0; b < count; b++) {
            char *old = pattern(sizes[a], a);
            char *new = pattern(sizes[b], 100 + b);
            char *both = malloc(sizes[a] + sizes[b] + 1);

            memcpy(both, old, sizes[a]);
            memcpy(both + sizes[a], new, sizes[b]);
            put_bytes(STORE_SET, "k", old, sizes[a]);
            put_bytes(STORE_APPEND, "k", new, sizes[b]);
            expect_bytes("k", both, sizes[a] + sizes[b]);
            put_bytes(STORE_SET, "k", new, sizes[b]);
            put_bytes(STORE_PREPEND, "k", old, sizes[a]);
            expect_bytes("k", both, sizes[a] + sizes[b]);
            free(old);
            free(new);
            free(both);
        }
    }
    ck_assert_uint_eq(totals_of(s).curr_items, 1);
}
END_TEST

START_TEST(joined_too_large_is_refused)
{
    struct store_result r;
    char *value = pattern(600 * 1024, 1);

    open_with_chunks(chunk_sizes[_i]);
    put_bytes(STORE_SET, "k", value, 600 * 1024);
    ck_assert_int_eq(
        put_full(s, STORE_APPEND, key_of("k"), value, 600 * 1024, 0, 0, 0, NOW, &r),
        STORE_TOO_LARGE);
    expect_bytes("k", value, 600 * 1024);
    ck_assert_uint_eq(class_of(s, store_class_count(s), NOW).number, 1);
    free(value);
}
END_TEST

START_TEST(chained_is_no_number)
{
    struct store_result r;
    char number[STORE_NUMBER_DIGITS];
    size_t digits;
    char *value = malloc(20000);

    memset(value, ' ', 20000);
    value[0] = '7';
    open_with_chunks(chunk_sizes[_i]);
    put_bytes(STORE_SET, "k", value, 20000);
    ck_assert_int_eq(arith(s, "k", true, 1, NOW, number, &digits, &r), STORE_NOT_NUMERIC);
    free(value);
}
END_TEST

/* A full store replaces chained items by chained items for ever, every survivor intact. */
START_TEST(full_store_keeps_turning_over)
{
    unsigned survivors = 0;

    open_with_chunks(chunk_sizes[_i]);
    for (unsigned i = 0; i < 600; i++) {
        size_t len = 20000 + (i * 7919u) % 400000u;
        char *value = pattern(len, i);
        char key[16];

        snprintf(key, sizeof(key), "k%u", i);
        put_bytes(STORE_SET, key, value, len);
        free(value);
    }
    ck_assert_uint_gt(totals_of(s).evictions, 100);
    ck_assert_uint_le(totals_of(s).malloced_bytes, LIMIT + STORE_CLASSES * MIB);
    for (unsigned i = 0; i < 600; i++) {
        size_t len = 20000 + (i * 7919u) % 400000u;
        char *value = pattern(len, i);
        char key[16];

        snprintf(key, sizeof(key), "k%u", i);
        if (is_there(s, key, NOW)) {
            expect_bytes(key, value, len);
            survivors++;
        }
        free(value);
    }
    ck_assert_uint_eq(survivors, totals_of(s).curr_items);
    ck_assert_uint_gt(survivors, 100);
}
END_TEST

/* One chunk for all that the store may hold: an item that can not be built leaves nothing
 * behind, and says so. */
START_TEST(broken_chain_is_returned)
{
    struct item *it;

    conf = default_conf(2 * MIB);
    conf.chunk_max = MIB / 2;
    conf.item_max = 4 * MIB;
    conf.can_evict = false;
    s = open_store(&conf);
    ck_assert_int_eq(store_reserve(s, key_of("k"), 0, 0, 3 * MIB, NOW, &it),
                     STORE_NO_MEMORY);
    ck_assert_ptr_null(it);
    assert_empty(s);
    ck_assert_uint_eq(class_of(s, store_class_count(s), NOW).outofmemory, 1);
}
END_TEST

/* A value written in pieces of any size, also backwards. */
START_TEST(pieces_may_come_in_any_order)
{
    size_t len = 90000;
    char *value = pattern(len, 77);
    struct store_result r;
    struct item *it;

    open_with_chunks(chunk_sizes[_i]);
    ck_assert_int_eq(store_reserve(s, key_of("k"), 3, 0, (uint32_t)len, NOW, &it),
                     STORE_OK);
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
    ck_assert_int_eq(store_commit(s, it, &(struct store_put){.mode = STORE_SET}, NOW, &r),
                     STORE_OK);
    expect_bytes("k", value, len);
    free(value);
}
END_TEST

/* The chunks of a small class are all taken by heads of chained items: small items push
 * those out rather than be refused for ever. */
START_TEST(heads_make_room_for_small_items)
{
    unsigned i = 0;

    conf = default_conf(0); /* one page a class */
    conf.chunk_max = 1024;
    conf.min_space = 464; /* 512 bytes, 2048 chunks, are the least */
    conf.growth_factor = 1.9;
    s = open_store(&conf);
    ck_assert_uint_eq(store_class_count(s), 2);
    while (class_of(s, 1, NOW).used_chunks < 2048 && i < 4000) {
        char key[16];

        /* head and tail in the small class, one chunk in the large one */
        snprintf(key, sizeof(key), "k%u", i++);
        ck_assert_int_eq(put_sized(s, key, 1200, 0, NOW), STORE_OK);
    }
    ck_assert_uint_eq(class_of(s, 1, NOW).used_chunks, 2048);
    ck_assert_uint_eq(class_of(s, 1, NOW).number, 0);
    ck_assert_int_eq(put_sized(s, "small", 10, 0, NOW), STORE_OK);
    ck_assert(is_there(s, "small", NOW));
    ck_assert_uint_ge(totals_of(s).evictions, 1);
}
END_TEST

/* A reference keeps all chunks of a deleted item. */
START_TEST(reference_keeps_the_chain)
{
    size_t len = 100000;
    char *value = pattern(len, 9);
    char *found;
    struct store_result r;
    struct item *it;

    open_with_chunks(chunk_sizes[_i]);
    put_bytes(STORE_SET, "k", value, len);
    ck_assert_int_eq(store_get(s, key_of("k"), NOW, &it), STORE_OK);
    ck_assert_int_eq(store_delete(s, key_of("k"), NULL, NOW, &r), STORE_OK);
    check_size(len);
    found = read_item(it);
    ck_assert(memcmp(found, value, len) == 0);
    store_release(s, it);
    ck_assert_int_eq(store_delete(s, key_of("k"), NULL, NOW, &r), STORE_OK);
    assert_empty(s);
    free(found);
    free(value);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("store_chained");
    TCase *tc = tcase_create("chained");

    tcase_add_checked_fixture(tc, NULL, tear_down);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, every_byte_around_the_boundaries, 0, 2);
    tcase_add_loop_test(tc, sizes_in_steps, 0, 2);
    tcase_add_loop_test(tc, any_offset_may_be_asked, 0, 2);
    tcase_add_loop_test(tc, pieces_add_up, 0, 4);
    tcase_add_loop_test(tc, plain_and_chained_mix, 0, 2);
    tcase_add_loop_test(tc, joined_too_large_is_refused, 0, 2);
    tcase_add_loop_test(tc, chained_is_no_number, 0, 2);
    tcase_add_loop_test(tc, full_store_keeps_turning_over, 0, 2);
    tcase_add_test(tc, broken_chain_is_returned);
    tcase_add_loop_test(tc, pieces_may_come_in_any_order, 0, 2);
    tcase_add_test(tc, heads_make_room_for_small_items);
    tcase_add_loop_test(tc, reference_keeps_the_chain, 0, 2);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
