/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Counting by prefix: what is one, the bound, long prefixes with huge numbers, many threads.
 */
#include "serve/prefix.h"

#include <pthread.h>

#include "check_main.h"

#define THREADS 4
#define ROUNDS 20000

static struct prefixes prefixes;

static void
set_up(void)
{
    prefixes_init(&prefixes, ':', true, 42);
}

static void
tear_down(void)
{
    prefixes_fini(&prefixes);
}

static struct slice
slice(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static void
add_line(void *ctx, const char *line, size_t len)
{
    text_add(ctx, line, len);
}

static void
expect_dump(const char *want)
{
    SCOPED(text_free) struct text got = {.p = NULL};
    unsigned cursor = 0;
    ck_assert(!prefixes_tell(&prefixes, &cursor, UINT32_MAX, add_line, &got));
    text_add(&got, "", 1);
    ck_assert_str_eq(got.p, want);
}

FIXTURE(set_up, tear_down);

TEST(test_counts)
{
    prefixes_count(&prefixes, slice("foo:1"), PREFIX_GET, 1);
    prefixes_count(&prefixes, slice("foo:2"), PREFIX_GET, 0);
    prefixes_count(&prefixes, slice("foo:bar:3"), PREFIX_SET, 0);
    prefixes_count(&prefixes, slice("foo:"), PREFIX_DEL, 0);
    prefixes_count(&prefixes, slice(":x"), PREFIX_SET, 0);
    prefixes_count(&prefixes, slice("foo"), PREFIX_SET, 0);
    prefixes_count(&prefixes, slice("fo:1"), PREFIX_SET, 0);
    expect_dump("PREFIX foo get 2 hit 1 set 1 del 1\r\n"
                "PREFIX  get 0 hit 0 set 1 del 0\r\n"
                "PREFIX fo get 0 hit 0 set 1 del 0\r\n");
    prefixes_clear(&prefixes);
    expect_dump("");
    prefixes_count(&prefixes, slice("foo:1"), PREFIX_SET, 0);
    expect_dump("PREFIX foo get 0 hit 0 set 1 del 0\r\n");
}

TEST(test_switch)
{
    ck_assert(prefixes_are_on(&prefixes));
    prefixes_set_on(&prefixes, false);
    ck_assert(!prefixes_are_on(&prefixes));
}

/* A long prefix and numbers of 20 digits. */
TEST(test_widest_line)
{
    char key[REQ_KEY_MAX + 1];
    char want[PREFIX_LINE_MAX + 1];
    memset(key, 'k', REQ_KEY_MAX);
    key[REQ_KEY_MAX - 1] = ':';
    key[REQ_KEY_MAX] = '\0';
    for (unsigned what = 0; what < PREFIX_COUNTS; what++) {
        prefixes_count(&prefixes, slice(key), (enum prefix_count)what, 0);
    }
    uint64_t *counts = prefixes_counts(&prefixes, 0);
    for (unsigned what = 0; what < PREFIX_COUNTS; what++) {
        counts[what] = UINT64_MAX;
    }
    int len =
        snprintf(want, sizeof want,
                 "PREFIX %.*s get 18446744073709551615 hit 18446744073709551615 set "
                 "18446744073709551615 del 18446744073709551615\r\n",
                 REQ_KEY_MAX - 1, key);
    ck_assert_int_lt(len, PREFIX_LINE_MAX);
    expect_dump(want);
}

/* Beyond the bound nothing is learned, and what is known goes on. */
TEST(test_bound)
{
    char key[32];
    for (unsigned i = 0; i < PREFIX_MAX + 1000; i++) {
        snprintf(key, sizeof key, "p%u:x", i);
        prefixes_count(&prefixes, slice(key), PREFIX_SET, 0);
    }
    prefixes_count(&prefixes, slice("p0:y"), PREFIX_GET, 1);
    prefixes_count(&prefixes, slice("p65536:y"), PREFIX_GET, 1);
    ck_assert_uint_eq(prefixes.count, PREFIX_MAX);
    SCOPED(text_free) struct text got = {.p = NULL};
    unsigned cursor = 0;
    unsigned pieces = 0;
    while (prefixes_tell(&prefixes, &cursor, 1000, add_line, &got)) {
        pieces++;
    }
    ck_assert_uint_eq(pieces, PREFIX_MAX / 1000);
    const char *first = "PREFIX p0 get 1 hit 1 set 1 del 0\r\n";
    ck_assert_mem_eq(got.p, first, strlen(first));
    const char *last = "PREFIX p65535 get 0 hit 0 set 1 del 0\r\n";
    ck_assert_mem_eq(got.p + got.len - strlen(last), last, strlen(last));
}

/* What a binary client may send as a key is no line of its own. */
TEST(test_bytes_that_end_lines)
{
    static const char key[] = "a\r\nEND\r\n:x";
    static const char line[] = "PREFIX a%0D%0AEND%0D%0A get 0 hit 0 set 1 del 0\r\n";
    SCOPED(text_free) struct text got = {.p = NULL};
    unsigned cursor = 0;
    prefixes_count(&prefixes, (struct slice){key, sizeof key - 1}, PREFIX_SET, 0);
    ck_assert(!prefixes_tell(&prefixes, &cursor, 10, add_line, &got));
    ck_assert_uint_eq(got.len, strlen(line));
    ck_assert_mem_eq(got.p, line, got.len);
}

/* A dump that goes on after the prefixes were forgotten just ends. */
TEST(test_cursor_behind_the_end)
{
    struct text got = {.p = NULL};
    unsigned cursor = 7;
    ck_assert(!prefixes_tell(&prefixes, &cursor, 10, add_line, &got));
    ck_assert_uint_eq(got.len, 0);
}

static void *
count_much(void *arg)
{
    char key[32];
    for (unsigned i = 0; i < ROUNDS; i++) {
        snprintf(key, sizeof key, "%u:x", i % 100);
        prefixes_count(&prefixes, slice(key), PREFIX_SET, 0);
    }
    return arg;
}

TEST(test_many_threads)
{
    pthread_t threads[THREADS];
    uint64_t total = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_create(&threads[i], NULL, count_much, NULL));
    }
    for (unsigned i = 0; i < THREADS; i++) {
        PTHREAD_OK(pthread_join(threads[i], NULL));
    }
    ck_assert_uint_eq(prefixes.count, 100);
    for (unsigned i = 0; i < prefixes.count; i++) {
        total += prefixes_counts(&prefixes, i)[PREFIX_SET];
    }
    ck_assert_uint_eq(total, THREADS * ROUNDS);
}
