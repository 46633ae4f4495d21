/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The client's side of the text protocol: requests byte for byte, every kind of reply, and
 * the same replies however the bytes are cut.
 */
#include "proto/client.h"
#include "check_main.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- requests ---------------------------------------------------------------------- */

static void
expect_bytes(const char *bytes, size_t n, const char *text)
{
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_mem_eq(bytes, text, n);
}

TEST(test_requests)
{
    char buf[1024];
    size_t n = client_put_get(buf, false);
    n += client_put_key(buf + n, "a", 1);
    n += client_put_key(buf + n, "bcd", 3);
    n += client_put_end(buf + n);
    expect_bytes(buf, n, "get a bcd\r\n");

    n = client_put_get(buf, true);
    n += client_put_key(buf + n, "a", 1);
    n += client_put_end(buf + n);
    expect_bytes(buf, n, "gets a\r\n");

    n = client_put_delete(buf, "key", 3);
    expect_bytes(buf, n, "delete key\r\n");

    n = client_put_number(buf, "incr", "key", 3, UINT64_MAX);
    expect_bytes(buf, n, "incr key 18446744073709551615\r\n");
}

TEST(test_stores)
{
    static const struct {
        struct client_store store;
        const char *expected;
    } rows[] = {
#define ROW(expected, ...) {{__VA_ARGS__}, expected}
        ROW("set k 0 0 200\r\n", .verb = "set", .key = "k", .key_len = 1,
            .value_len = 200),
        ROW("add kk 4294967295 -1 0 noreply\r\n", .verb = "add", .key = "kk",
            .key_len = 2, .flags = UINT32_MAX, .exptime = -1, .is_quiet = true),
        ROW("set k 0 -2147483648 0\r\n", .verb = "set", .key = "k", .key_len = 1,
            .exptime = INT32_MIN),
        ROW("cas k 0 9 1 77\r\n", .verb = "cas", .key = "k", .key_len = 1, .exptime = 9,
            .value_len = 1, .cas = 77),
    };
    char buf[1024];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t n = client_put_store(buf, &rows[i].store);
        expect_bytes(buf, n, rows[i].expected);
    }
}

/* ---- replies: what is parsed is written down as text and compared --------------------- */

struct trace {
    char text[16384];
    size_t len;
    enum client_kind last;
    struct client_parser parser;
};

__attribute__((format(printf, 2, 3))) static void
trace_add(struct trace *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->text + t->len, sizeof t->text - t->len, format, args);
    va_end(args);
    ck_assert_int_ge(n, 0);
    t->len += (size_t)n;
    ck_assert_uint_lt(t->len, sizeof t->text);
}

static void
trace_reply(struct trace *t, const struct client_reply *r)
{
    if (r->kind == CLIENT_DATA) {
        /* Pieces of a value: their number depends on the cuts, their bytes do not. */
        trace_add(t, "%.*s", (int)r->text_len, r->text);
        ck_assert_uint_gt(r->text_len, 0);
    } else {
        trace_add(t, "|%s", client_kind_name(r->kind));
    }
    if (r->kind == CLIENT_VALUE) {
        trace_add(t, "(%.*s,%u,%ju", (int)r->key_len, r->key, r->flags,
                  (uintmax_t)r->value_len);
        if (r->has_cas) {
            trace_add(t, ",%ju", (uintmax_t)r->cas);
        }
        trace_add(t, ")=");
    } else if (r->kind == CLIENT_NUMBER) {
        trace_add(t, "(%ju)", (uintmax_t)r->number);
    } else if (r->kind != CLIENT_DATA && r->text != NULL) {
        trace_add(t, "(%.*s)", (int)r->text_len, r->text);
    }
    t->last = r->kind;
}

static struct trace
begin(void)
{
    struct trace t = {.last = CLIENT_MORE};
    client_parser_init(&t.parser);
    return t;
}

/* Feeds one piece from an exactly sized block, so that reading beyond it is seen. */
static void
feed(struct trace *t, const char *bytes, size_t len)
{
    FREED char *copy = exact_copy(bytes, len);
    size_t at = 0;
    for (;;) {
        struct client_reply r;
        size_t taken = client_parse(&t->parser, copy + at, len - at, &r);
        ck_assert_uint_le(taken, len - at);
        at += taken;
        if (r.kind == CLIENT_MORE) {
            ck_assert_uint_eq(at, len);
            break;
        }
        if (t->last != CLIENT_DESYNC) {
            trace_reply(t, &r);
        }
        if (r.kind == CLIENT_DESYNC) {
            break;
        }
    }
}

static const struct {
    const char *bytes, *expected;
} dialogues[] = {
    {"END\r\n", "|END"},
    {"STORED\r\nNOT_STORED\r\nEXISTS\r\nNOT_FOUND\r\n",
     "|STORED|NOT_STORED|EXISTS|NOT_FOUND"},
    {"DELETED\r\nTOUCHED\r\nOK\r\nRESET\r\nERROR\r\n", "|DELETED|TOUCHED|OK|RESET|ERROR"},
    {"VALUE k 5 3\r\nabc\r\nEND\r\n", "|VALUE(k,5,3)=abc|END"},
    {"VALUE k 0 0\r\n\r\nEND\r\n", "|VALUE(k,0,0)=|END"},
    {"VALUE a 1 2 99\r\nab\r\nVALUE b 4294967295 4\r\nEND\n\r\nEND\r\n",
     "|VALUE(a,1,2,99)=ab|VALUE(b,4294967295,4)=END\n|END"},
    {"VALUE k 0 7\r\n\r\nEND\r\n\r\nEND\r\n", "|VALUE(k,0,7)=\r\nEND\r\n|END"},
    {"0\r\n18446744073709551615\r\n12  \r\n",
     "|number(0)|number(18446744073709551615)|number(12)"},
    {"STAT pid 1\r\nSTAT empty \r\nEND\r\n", "|STAT(pid 1)|STAT(empty )|END"},
    {"VERSION 1.4.39\r\n", "|VERSION(1.4.39)"},
    {"CLIENT_ERROR bad data chunk\r\nSERVER_ERROR out of memory storing object\r\n",
     "|CLIENT_ERROR(bad data chunk)|SERVER_ERROR(out of memory storing object)"},
    {"SERVER_ERROR\r\nEND\r\n", "|SERVER_ERROR()|END"},
    {"ERROR Too many open connections\r\n", "|ERROR(Too many open connections)"},
    {"END\n", "|desync"},
    {"\r\n", "|desync"},
    {"END \r\n", "|desync"},
    {"end\r\n", "|desync"},
    {"HTTP/1.1 400 Bad Request\r\n", "|desync"},
    {"18446744073709551616\r\n", "|desync"},
    {"VALUE k 0\r\n", "|desync"},
    {"VALUE k 0 -1\r\n", "|desync"},
    {"VALUE k 4294967296 1\r\n", "|desync"},
    {"VALUE  0 1\r\n", "|desync"},
    {"VALUE k 0 1 x\r\n", "|desync"},
    {"VALUE k 0 3\r\nabcdEND\r\n", "|VALUE(k,0,3)=abc|desync"},
    {"VALUE k 0 3\r\nabc\nEND\r\n", "|VALUE(k,0,3)=abc|desync"},
    {"VALUE k 0 3\r\nabc\rEND\r\n", "|VALUE(k,0,3)=abc|desync"},
    {"STORED\r\ngarbage\r\nSTORED\r\n", "|STORED|desync"},
};

TEST_ROWS(test_whole, dialogues, row->bytes)
{
    struct trace t = begin();
    feed(&t, row->bytes, strlen(row->bytes));
    ck_assert_str_eq(t.text, row->expected);
    ck_assert(client_parser_is_idle(&t.parser) == (t.last != CLIENT_DESYNC));
}

TEST_ROWS(test_cut_in_two, dialogues, row->bytes)
{
    size_t len = strlen(row->bytes);
    for (size_t cut = 0; cut <= len; cut++) {
        struct trace t = begin();
        feed(&t, row->bytes, cut);
        feed(&t, row->bytes + cut, len - cut);
        ck_assert_str_eq(t.text, row->expected);
    }
}

TEST_ROWS(test_byte_by_byte, dialogues, row->bytes)
{
    struct trace t = begin();
    for (const char *at = row->bytes; *at != '\0'; at++) {
        feed(&t, at, 1);
    }
    ck_assert_str_eq(t.text, row->expected);
}

TEST(test_long_lines)
{
    char line[CLIENT_LINE_MAX + 1];
    /* The longest line, whole and cut, is understood; one byte more is not. */
    for (int extra = 0; extra <= 1; extra++) {
        size_t len = CLIENT_LINE_MAX + (size_t)extra;
        memset(line, 'x', sizeof line);
        memcpy(line, "STAT ", 5);
        memcpy(line + len - 2, "\r\n", 2);
        for (size_t cut = 0; cut <= len; cut += 31) {
            struct trace t = begin();
            feed(&t, line, cut);
            feed(&t, line + cut, len - cut);
            ck_assert_int_eq(t.last, extra == 0 ? CLIENT_STAT : CLIENT_DESYNC);
        }
    }
}

TEST(test_endless_line)
{
    struct trace t = begin();
    size_t fed = 0;
    while (t.last != CLIENT_DESYNC) {
        feed(&t, "xxxxxxxxxx", 10);
        fed += 10;
        ck_assert_uint_le(fed, CLIENT_LINE_MAX + 10);
    }
}

TEST(test_long_key)
{
    char line[400];
    for (int len = 249; len <= 251; len++) {
        struct trace t = begin();
        int n = snprintf(line, sizeof line, "VALUE %0*d 0 1\r\nx\r\nEND\r\n", len, 0);
        feed(&t, line, (size_t)n);
        ck_assert_int_eq(t.last, len <= CLIENT_KEY_MAX ? CLIENT_END : CLIENT_DESYNC);
    }
}

TEST(test_broken_stays_broken)
{
    struct client_parser p;
    struct client_reply r;
    client_parser_init(&p);
    ck_assert_uint_eq(client_parse(&p, "?\r\n", 3, &r), 3);
    ck_assert_int_eq(r.kind, CLIENT_DESYNC);
    ck_assert_uint_eq(client_parse(&p, "END\r\n", 5, &r), 0);
    ck_assert_int_eq(r.kind, CLIENT_DESYNC);
    client_parser_init(&p);
    ck_assert_uint_eq(client_parse(&p, "END\r\n", 5, &r), 5);
    ck_assert_int_eq(r.kind, CLIENT_END);
}

/* A hit that is all there is taken at once, as the parser would take it piece by piece, with the end
 * of the reply where that follows; of everything else nothing is. */
TEST(test_hit)
{
    static const char *const hits[] = {
        "VALUE k 0 0\r\n\r\nEND\r\n",
        "VALUE key 7 5\r\nvalue\r\nEND\r\n",
        "VALUE key 7 5\r\nother\r\nEND\r\n",
        "VALUE yek 7 29\r\n01234567890123456789\r\n6789END\r\nEND\r\n",
        "VALUE longer 7 5\r\nvalue\r\nEND\r\n",
        "VALUE key 999999999 3\r\n\r\n\n\r\nEND\r\n",
        "VALUE key 999999999 000000003\r\n\r\n\n\r\nEND\r\n",
        "VALUE key 7 5\r\nvalue\r\nVALUE",
        "VALUE other 7 5\r\nvalue\r\nEND\r ",
    };
    static const char *const others[] = {
        "END\r\nVALUE k 0 0\r\n",          "VALUE  0 0\r\n\r\nEND\r\n       ",
        "VALUE k 0 0 5\r\n\r\nEND\r\n",    "VALUE k 0 5\r\nvaluEND\r\nEND\r\n",
        "VALUE k -1 1\r\nv\r\nEND\r\n",    "VALUE k 0 1\n\nv\r\nEND\r\n   ",
        "VALUE k  0\r\n\r\nEND\r\n     ",  "VALUE k 0 99999999999\r\nv\r\nEND\r\n",
        "VALUE k 0 1\r\nv\nEND\r\nEND\r\n"};
    struct client_reply hit, reply;
    struct client_hit_line last = {.least = 0};
    for (unsigned i = 0; i < 2 * (sizeof hits / sizeof hits[0]);
         i++) { /* each after itself, too */
        const char *text = hits[i / 2];
        size_t len = strlen(text);
        for (size_t n = 0; n < len; n++) {
            FREED char *part = exact_copy(text, n);
            ck_assert_uint_eq(client_parse_hit(part, n, &last, &hit), 0);
        }
        FREED char *whole = exact_copy(text, len);
        struct client_parser p;
        client_parser_init(&p);
        size_t end_len = strlen("END\r\n");
        bool is_end = memcmp(text + len - end_len, "END\r\n", end_len) == 0;
        ck_assert_uint_eq(client_parse_hit(whole, len, &last, &hit),
                          is_end ? len : len - end_len);
        ck_assert_int_eq(hit.kind, is_end ? CLIENT_END : CLIENT_VALUE);
        size_t taken = client_parse(&p, whole, len, &reply);
        ck_assert_int_eq(reply.kind, CLIENT_VALUE);
        ck_assert_ptr_eq(hit.key, reply.key);
        ck_assert_uint_eq(hit.key_len, reply.key_len);
        ck_assert_uint_eq(hit.flags, reply.flags);
        ck_assert_uint_eq(hit.value_len, reply.value_len);
        ck_assert_ptr_eq(hit.text, whole + taken);
    }
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        ck_assert_uint_eq(client_parse_hit(others[i], strlen(others[i]), &last, &hit), 0);
    }
}
