/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Replies as bytes.
 */
#include "proto/ascii.h"

#include "base/ctr.h"
#include "check_main.h"
#include "check_output.h"

static void
check_output_is(const char *expected)
{
    check_output(expected, strlen(expected));
}

/* Spelled out here once more: clients compare these bytes. */
static const struct {
    enum reply reply;
    const char *line;
} reply_rows[] = {
    {REPLY_OK, "OK\r\n"},
    {REPLY_END, "END\r\n"},
    {REPLY_STORED, "STORED\r\n"},
    {REPLY_NOT_STORED, "NOT_STORED\r\n"},
    {REPLY_EXISTS, "EXISTS\r\n"},
    {REPLY_NOT_FOUND, "NOT_FOUND\r\n"},
    {REPLY_DELETED, "DELETED\r\n"},
    {REPLY_TOUCHED, "TOUCHED\r\n"},
    {REPLY_RESET, "RESET\r\n"},
    {REPLY_ERROR, "ERROR\r\n"},
    {REPLY_BAD_FORMAT, "CLIENT_ERROR bad command line format\r\n"},
    {REPLY_BAD_DATA, "CLIENT_ERROR bad data chunk\r\n"},
    {REPLY_BAD_DELETE, "CLIENT_ERROR bad command line format.  Usage: delete <key> "
                       "[noreply]\r\n"},
    {REPLY_BAD_EXPTIME, "CLIENT_ERROR invalid exptime argument\r\n"},
    {REPLY_BAD_DELTA, "CLIENT_ERROR invalid numeric delta argument\r\n"},
    {REPLY_NOT_NUMERIC,
     "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"},
    {REPLY_FLUSH_REFUSED, "CLIENT_ERROR flush_all not allowed\r\n"},
    {REPLY_TOO_LARGE, "SERVER_ERROR object too large for cache\r\n"},
    {REPLY_NO_MEMORY_STORING, "SERVER_ERROR out of memory storing object\r\n"},
    {REPLY_NO_MEMORY, "SERVER_ERROR out of memory\r\n"},
    {REPLY_SHUTDOWN_OFF_14, "ERROR: shutdown not enabled\r\n"},
    {REPLY_SHUTDOWN_OFF_16, "SERVER_ERROR: shutdown not enabled\r\n"},
    {REPLY_MEMLIMIT_SMALL, "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"},
    {REPLY_MEMLIMIT_UNIT,
     "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n"},
};

/* All there are, as the table has them. */
static const char *const lines[REPLY_COUNT] = {
#define REPLY(id, text) [REPLY_##id] = text "\r\n",
#include "proto/reply.def"
#undef REPLY
};

FIXTURE(set_up_chain, tear_down_chain);

TEST_ROWS(test_fixed_replies, reply_rows, row->line)
{
    ck_assert(ascii_put_reply(&chain, &env, row->reply));
    check_output_is(row->line);
}

TEST(test_every_reply_is_one_line)
{
    for (unsigned i = REPLY_NONE + 1; i < REPLY_COUNT; i++) {
        const char *text = lines[i];
        size_t len = strlen(text);
        ck_assert_uint_gt(len, 2);
        ck_assert_ptr_eq(strstr(text, "\r\n"), text + len - 2);
    }
}

TEST_ABORTS(test_no_reply_is_no_line)
{
    ck_assert(ascii_put_reply(&chain, &env, REPLY_NONE));
}

TEST(test_replies_in_order)
{
    ck_assert(ascii_put_reply(&chain, &env, REPLY_STORED));
    ck_assert(ascii_put_number(&chain, &env, "18446744073709551615", 20));
    ck_assert(ascii_put_stat(&chain, &env, "pid", "17"));
    ck_assert(ascii_put_stat(&chain, &env, "empty", ""));
    ck_assert(ascii_put_number(&chain, &env, "0", 1));
    ck_assert(ascii_put_reply(&chain, &env, REPLY_END));
    check_output_is("STORED\r\n18446744073709551615\r\nSTAT pid 17\r\nSTAT empty \r\n"
                    "0\r\nEND\r\n");
}

/* More replies than a block holds. */
TEST(test_many_replies)
{
    SCOPED(text_free) struct text expected = {.p = NULL};
    for (unsigned i = 0; i < 5000; i++) {
        enum reply reply = (enum reply)(1 + i % (REPLY_COUNT - 1));
        expect(ascii_put_reply(&chain, &env, reply));
        text_add(&expected, lines[reply], strlen(lines[reply]));
    }
    ck_assert_uint_gt(ctr_get(&pool.used), 1);
    text_add(&expected, "", 1);
    check_output_is(expected.p);
}

static const struct {
    const char *key;
    uint32_t flags, len;
    bool has_cas;
    uint64_t cas;
    const char *line;
} head_rows[] = {
    {"k", 0, 0, false, 5, "VALUE k 0 0\r\n"},
    {"key", 17, 1048576, false, 0, "VALUE key 17 1048576\r\n"},
    {"k", 1, 2, true, 3, "VALUE k 1 2 3\r\n"},
    {"k", 1, 2, true, 0, "VALUE k 1 2 0\r\n"},
    {"k", UINT32_MAX, UINT32_MAX, true, UINT64_MAX,
     "VALUE k 4294967295 4294967295 18446744073709551615\r\n"},
};

TEST_ROWS(test_value_head, head_rows, row->line)
{
    size_t key_len = strlen(row->key);
    FREED char *key = exact_copy(row->key, key_len);
    FREED char *dst = malloc(ASCII_VALUE_HEAD_MAX);
    ck_assert_ptr_nonnull(dst);
    size_t n =
        ascii_value_head(dst, key, key_len, row->flags, row->len, row->has_cas, row->cas);
    ck_assert_uint_eq(n, strlen(row->line));
    ck_assert_mem_eq(dst, row->line, n);
}

TEST(test_longest_value_head)
{
    char key[REQ_KEY_MAX];
    memset(key, 'k', sizeof key);
    FREED char *dst = malloc(ASCII_VALUE_HEAD_MAX);
    ck_assert_ptr_nonnull(dst);
    size_t n =
        ascii_value_head(dst, key, sizeof key, UINT32_MAX, UINT32_MAX, true, UINT64_MAX);
    ck_assert_uint_le(n, ASCII_VALUE_HEAD_MAX);
    ck_assert_uint_eq(n, 6 + sizeof key + 1 + 10 + 1 + 10 + 1 + 20 + 2);
    ck_assert_mem_eq(dst + n - 2, "\r\n", 2);
}
