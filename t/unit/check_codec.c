/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The protocols of mcload: requests byte for byte, every kind of reply with the request that
 * it answers, and the same replies however the bytes are cut.
 */
#include "loadgen/wire/codec.h"
#include "loadgen/work/workload.h"
#include "check_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN(literal) (sizeof(literal) - 1)
#define BYTES(literal) literal, LEN(literal)
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* ---- requests ---------------------------------------------------------------------- */

static size_t
put_request(const struct codec *codec, enum codec_verb verb, unsigned keys, char *buf)
{
    static const char *const names[] = {"a", "bcd", "ef"};
    size_t n = 0;
    struct codec_store store = {verb, "key", 3, 7, 60, 5, 99};
    struct codec_order order = {verb, "key", 3, 30};
    struct codec_get get = {verb, keys, NULL};
    switch (verb) {
    case CODEC_GET:
    case CODEC_GETS:
        n = codec_put_get(codec, buf, &get);
        for (unsigned i = 0; i < keys; i++) {
            n += codec->put_key(buf + n, &get, names[i], strlen(names[i]));
        }
        return n + codec_put_get_end(codec, buf + n, &get);
    case CODEC_SET:
    case CODEC_ADD:
    case CODEC_CAS:
    case CODEC_REPLACE:
    case CODEC_APPEND:
    case CODEC_PREPEND:
        n = codec->put_store(buf, &store);
        n += codec_put_text(buf + n, "hello");
        return n + codec_put_store_end(codec, buf + n, &store);
    case CODEC_AUTH:
        return codec->put_auth(buf, "user", "secret");
    default:
        return codec->put_order(buf, &order);
    }
}

#define HEADER(opcode, key, extras, body)                                                \
    "\x80" opcode "\0" key extras "\0\0\0\0\0" body "mcld\0\0\0\0\0\0\0\0"

static const struct {
    const struct codec *codec;
    enum codec_verb verb;
    unsigned keys;
    const char *bytes;
    size_t len;
} requests[] = {
    {&codec_ascii, CODEC_GET, 1, BYTES("get a\r\n")},
    {&codec_ascii, CODEC_GETS, 3, BYTES("gets a bcd ef\r\n")},
    {&codec_ascii, CODEC_SET, 1, BYTES("set key 7 60 5\r\nhello\r\n")},
    {&codec_ascii, CODEC_ADD, 1, BYTES("add key 7 60 5\r\nhello\r\n")},
    {&codec_ascii, CODEC_CAS, 1, BYTES("cas key 7 60 5 99\r\nhello\r\n")},
    {&codec_ascii, CODEC_DELETE, 1, BYTES("delete key\r\n")},
    {&codec_ascii, CODEC_TOUCH, 1, BYTES("touch key 30\r\n")},
    {&codec_ascii, CODEC_INCR, 1, BYTES("incr key 30\r\n")},
    {&codec_ascii, CODEC_REPLACE, 1, BYTES("replace key 7 60 5\r\nhello\r\n")},
    {&codec_ascii, CODEC_APPEND, 1, BYTES("append key 7 60 5\r\nhello\r\n")},
    {&codec_ascii, CODEC_PREPEND, 1, BYTES("prepend key 7 60 5\r\nhello\r\n")},
    {&codec_ascii, CODEC_DECR, 1, BYTES("decr key 30\r\n")},
    {&codec_ascii, CODEC_AUTH, 1, BYTES("set auth 0 0 11\r\nuser secret\r\n")},

    {&codec_meta, CODEC_GET, 1, BYTES("mg a k f v\r\n")},
    {&codec_meta, CODEC_GETS, 1, BYTES("mg a k f v c\r\n")},
    {&codec_meta, CODEC_GET, 3,
     BYTES("mg a k f v q\r\nmg bcd k f v q\r\nmg ef k f v q\r\nmn\r\n")},
    {&codec_meta, CODEC_SET, 1, BYTES("ms key 5 F7 T60\r\nhello\r\n")},
    {&codec_meta, CODEC_ADD, 1, BYTES("ms key 5 F7 T60 ME\r\nhello\r\n")},
    {&codec_meta, CODEC_CAS, 1, BYTES("ms key 5 F7 T60 C99\r\nhello\r\n")},
    {&codec_meta, CODEC_DELETE, 1, BYTES("md key\r\n")},
    {&codec_meta, CODEC_TOUCH, 1, BYTES("mg key T30\r\n")},
    {&codec_meta, CODEC_INCR, 1, BYTES("ma key v D30\r\n")},
    {&codec_meta, CODEC_REPLACE, 1, BYTES("ms key 5 F7 T60 MR\r\nhello\r\n")},
    {&codec_meta, CODEC_APPEND, 1, BYTES("ms key 5 F7 T60 MA\r\nhello\r\n")},
    {&codec_meta, CODEC_PREPEND, 1, BYTES("ms key 5 F7 T60 MP\r\nhello\r\n")},
    {&codec_meta, CODEC_DECR, 1, BYTES("ma key v MD D30\r\n")},
    {&codec_meta, CODEC_AUTH, 1, BYTES("set auth 0 0 11\r\nuser secret\r\n")},

    {&codec_binary, CODEC_GET, 1, BYTES(HEADER("\x0c", "\1", "\0", "\0\1") "a")},
    {&codec_binary, CODEC_GETS, 2,
     BYTES(HEADER("\x0d", "\1", "\0", "\0\1") "a" HEADER(
         "\x0d", "\3", "\0", "\0\3") "bcd" HEADER("\x0a", "\0", "\0", "\0\0"))},
    {&codec_binary, CODEC_SET, 1,
     BYTES(HEADER("\x01", "\3", "\x08", "\0\x10") "\0\0\0\7\0\0\0\x3c"
                                                  "keyhello")},
    {&codec_binary, CODEC_ADD, 1,
     BYTES(HEADER("\x02", "\3", "\x08", "\0\x10") "\0\0\0\7\0\0\0\x3c"
                                                  "keyhello")},
    {&codec_binary, CODEC_CAS, 1,
     BYTES("\x80\1\0\3\x08\0\0\0\0\0\0\x10mcld\0\0\0\0\0\0\0\x63"
           "\0\0\0\7\0\0\0\x3ckeyhello")},
    {&codec_binary, CODEC_DELETE, 1, BYTES(HEADER("\x04", "\3", "\0", "\0\3") "key")},
    {&codec_binary, CODEC_TOUCH, 1,
     BYTES(HEADER("\x1c", "\3", "\4", "\0\7") "\0\0\0\x1e"
                                              "key")},
    {&codec_binary, CODEC_INCR, 1,
     BYTES(HEADER("\5", "\3", "\x14", "\0\x17") "\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0\0"
                                                "\xff\xff\xff\xff"
                                                "key")},
    {&codec_binary, CODEC_REPLACE, 1,
     BYTES(HEADER("\x03", "\3", "\x08", "\0\x10") "\0\0\0\7\0\0\0\x3c"
                                                  "keyhello")},
    {&codec_binary, CODEC_APPEND, 1,
     BYTES(HEADER("\x0e", "\3", "\0", "\0\x08") "keyhello")},
    {&codec_binary, CODEC_PREPEND, 1,
     BYTES(HEADER("\x0f", "\3", "\0", "\0\x08") "keyhello")},
    {&codec_binary, CODEC_DECR, 1,
     BYTES(HEADER("\6", "\3", "\x14", "\0\x17") "\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0\0"
                                                "\xff\xff\xff\xff"
                                                "key")},
    {&codec_binary, CODEC_AUTH, 1,
     BYTES(HEADER("\x21", "\5", "\0", "\0\x11") "PLAIN\0user\0secret")},

    {&codec_redis, CODEC_GET, 1, BYTES("*2\r\n$3\r\nGET\r\n$1\r\na\r\n")},
    {&codec_redis, CODEC_GET, 3,
     BYTES("*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$3\r\nbcd\r\n$2\r\nef\r\n")},
    {&codec_redis, CODEC_SET, 1,
     BYTES("*5\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nhello\r\n$2\r\nEX\r\n$2\r\n60\r\n")},
    {&codec_redis, CODEC_ADD, 1,
     BYTES("*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nhello\r\n$2\r\nEX\r\n$2\r\n60\r\n"
           "$2\r\nNX\r\n")},
    {&codec_redis, CODEC_DELETE, 1, BYTES("*2\r\n$3\r\nDEL\r\n$3\r\nkey\r\n")},
    {&codec_redis, CODEC_TOUCH, 1,
     BYTES("*3\r\n$6\r\nEXPIRE\r\n$3\r\nkey\r\n$2\r\n30\r\n")},
    {&codec_redis, CODEC_INCR, 1,
     BYTES("*3\r\n$6\r\nINCRBY\r\n$3\r\nkey\r\n$2\r\n30\r\n")},
    {&codec_redis, CODEC_REPLACE, 1,
     BYTES("*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nhello\r\n$2\r\nEX\r\n$2\r\n60\r\n"
           "$2\r\nXX\r\n")},
    {&codec_redis, CODEC_DECR, 1,
     BYTES("*3\r\n$6\r\nDECRBY\r\n$3\r\nkey\r\n$2\r\n30\r\n")},
    {&codec_redis, CODEC_AUTH, 1,
     BYTES("*3\r\n$4\r\nAUTH\r\n$4\r\nuser\r\n$6\r\nsecret\r\n")},

    {&codec_http, CODEC_GET, 1, BYTES("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")},
};

TEST_LOOP(test_requests, COUNT(requests))
{
    char buf[1024];
    ck_assert(requests[_i].codec->verbs & CODEC_BIT(requests[_i].verb));
    size_t n = put_request(requests[_i].codec, requests[_i].verb, requests[_i].keys, buf);
    ck_assert_uint_eq(n, requests[_i].len);
    ck_assert_mem_eq(buf, requests[_i].bytes, n);
}

/* A get that was prepared is the one that is written piece by piece. */
TEST(test_stencil)
{
    char key[CLIENT_KEY_MAX], pieces[1024], whole[1024];
    const struct codec_get get = {CODEC_GET, 1, NULL};
    memset(key, 'k', sizeof key);
    const struct codec *codec;
    for (unsigned i = 0; (codec = codec_all[i]) != NULL; i++) {
        for (size_t len = 1; len <= sizeof key; len++) {
            struct codec_stencil stencil;
            codec_stencil_init(&stencil, codec, key, len);
            size_t n = codec_put_get(codec, pieces, &get);
            n += codec->put_key(pieces + n, &get, key, len);
            n += codec_put_get_end(codec, pieces + n, &get);
            ck_assert_uint_eq(codec_put_stencil(whole, &stencil), n);
            ck_assert_mem_eq(whole, pieces, n);
            ck_assert_mem_eq(whole + stencil.key_at, key, len);
        }
    }
}

/* A time to live of 0 is for ever; the EXPIRE of Redis would take it for the past. */
TEST(test_touch_for_ever)
{
    static const struct {
        const struct codec *codec;
        const char *bytes;
    } rows[] = {
        {&codec_ascii, "touch key 0\r\n"},
        {&codec_meta, "mg key T0\r\n"},
        {&codec_redis, "*2\r\n$5\r\nTOUCH\r\n$3\r\nkey\r\n"},
    };
    struct codec_order order = {CODEC_TOUCH, "key", 3, 0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buf[CLIENT_REQUEST_ROOM + CODEC_KEY_ROOM];
        ck_assert_uint_eq(rows[i].codec->put_order(buf, &order), strlen(rows[i].bytes));
        ck_assert_mem_eq(buf, rows[i].bytes, strlen(rows[i].bytes));
    }
}

/* What else a value says about its key: nothing, unless it is asked for. */
TEST(test_leases)
{
    static const struct {
        unsigned keys;
        struct codec_lease lease;
        const char *bytes;
    } rows[] = {
        {1, {10, 0}, "mg key k f v c N10\r\n"},
        {1, {30, 6}, "mg key k f v c N30 R6\r\n"},
        {2, {30, 6}, "mg key k f v c q N30 R6\r\n"},
    };
    static const struct {
        const char *bytes;
        unsigned marks;
    } replies[] = {
        {"VA 0 ka f0 c9\r\n\r\n", 0},
        {"VA 0 ka f0 c9 W\r\n\r\n", CLIENT_MARK_WON},
        {"VA 0 ka f0 c9 Z\r\n\r\n", CLIENT_MARK_TAKEN},
        {"VA 0 ka f0 c9 X Z\r\n\r\n", CLIENT_MARK_STALE | CLIENT_MARK_TAKEN},
        {"VA 0 ka f0 c9 W X\r\n\r\n", CLIENT_MARK_STALE | CLIENT_MARK_WON},
    };
    char buf[CLIENT_REQUEST_ROOM + CODEC_KEY_ROOM];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct codec_get get = {CODEC_GET, rows[i].keys, &rows[i].lease};
        size_t n = codec_meta.put_key(buf, &get, "key", 3);
        ck_assert_uint_eq(n, strlen(rows[i].bytes));
        ck_assert_mem_eq(buf, rows[i].bytes, n);
    }
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        struct codec_parser p;
        struct client_reply reply;
        struct codec_expect expect = {CODEC_GET, 1};
        codec_parser_init(&p);
        size_t taken = codec_parse(&codec_meta, &p, &expect, replies[i].bytes,
                                   strlen(replies[i].bytes), &reply);
        ck_assert_uint_gt(taken, 0);
        ck_assert_int_eq(reply.kind, CLIENT_VALUE);
        ck_assert_uint_eq(reply.marks, replies[i].marks);
        ck_assert_uint_eq(reply.cas, 9);
    }
}

/* Every request of every protocol fits the room that its caller leaves. */
TEST(test_room)
{
    static char buf[CODEC_AUTH_ROOM + 4 * CLIENT_REQUEST_ROOM];
    char key[CLIENT_KEY_MAX], text[CODEC_AUTH_MAX + 1];
    memset(key, 'k', sizeof key);
    memset(text, 't', CODEC_AUTH_MAX);
    text[CODEC_AUTH_MAX] = '\0';
    const struct codec *codec;
    for (unsigned i = 0; (codec = codec_all[i]) != NULL; i++) {
        ck_assert_ptr_eq(codec_find(codec->name), codec);
        struct codec_lease lease = {WORKLOAD_LEASE_S, WORKLOAD_EXPIRY_MAX};
        struct codec_get get = {CODEC_GETS, 1, NULL};
        size_t n = codec_put_get(codec, buf, &get);
        n += codec_put_get_end(codec, buf, &get);
        ck_assert_uint_le(n, CLIENT_REQUEST_ROOM);
        n = codec->put_key(buf, &get, key, sizeof key);
        ck_assert_uint_le(n, sizeof key + CODEC_KEY_ROOM);
        if (codec->has_leases) {
            get = (struct codec_get){CODEC_GET, 2, &lease};
            n = codec->put_key(buf, &get, key, sizeof key);
            ck_assert_uint_le(n, sizeof key + CODEC_KEY_ROOM);
        }
        struct codec_store store = {CODEC_CAS, key,        sizeof key, UINT32_MAX,
                                    INT32_MAX, UINT64_MAX, UINT64_MAX};
        struct codec_order order = {CODEC_INCR, key, sizeof key, UINT64_MAX};
        if (codec->verbs & CODEC_BIT(CODEC_SET)) {
            n = codec->put_store(buf, &store);
            n += codec_put_store_end(codec, buf, &store);
            ck_assert_uint_le(n, sizeof key + CLIENT_REQUEST_ROOM);
            store.verb = CODEC_ADD;
            store.exptime = INT32_MIN;
            n = codec->put_store(buf, &store);
            n += codec_put_store_end(codec, buf, &store);
            ck_assert_uint_le(n, sizeof key + CLIENT_REQUEST_ROOM);
            ck_assert_uint_le(codec->put_order(buf, &order),
                              sizeof key + CLIENT_REQUEST_ROOM);
        }
        if (codec->verbs & CODEC_BIT(CODEC_AUTH)) {
            ck_assert_uint_le(codec->put_auth(buf, text, text), CODEC_AUTH_ROOM);
        }
    }
    ck_assert_ptr_null(codec_find("nonsense"));
}

/* What each protocol can; options and connections ask for nothing else. */
TEST_LOOP(test_capabilities, 5)
{
    static const struct {
        const char *name;
        bool multiget, datagrams, any_byte, stats, leases, lone_secret;
    } rows[] = {
        {"ascii", true, true, false, true, false, false},
        {"meta", true, true, false, true, true, false},
        {"binary", true, true, true, true, false, false},
        {"redis", true, false, true, false, false, true},
        {"http", false, false, false, false, false, false},
    };
    const struct codec *c = codec_find(rows[_i].name);
    ck_assert_ptr_eq(c, codec_all[_i]);
    ck_assert_int_eq(c->has_multiget, rows[_i].multiget);
    ck_assert_int_eq(c->has_datagrams, rows[_i].datagrams);
    ck_assert_int_eq(c->takes_any_byte, rows[_i].any_byte);
    ck_assert_int_eq(c->has_stats, rows[_i].stats);
    ck_assert_int_eq(c->has_leases, rows[_i].leases);
    ck_assert_int_eq(c->has_lone_secret, rows[_i].lone_secret);
}

/* What a server that speaks another protocol begins with names that protocol. */
TEST(test_guess)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *words;
    } all[] = {
        {"-ERR unknown command", 20, "--protocol=redis"},
        {"-NOAUTH Authentication required.", 32, "--protocol=redis --password"},
        {"HTTP/1.1 400 Bad Request", 24, "--protocol=http"},
        {"\x81\x01\0", 3, "--protocol=binary"},
        {"ERROR\r\n", 7, "--protocol=ascii"},
        {"ERR", 3, NULL},
        {"-ERR", 4, NULL},
        {"", 0, NULL},
        {"garbage", 7, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        ck_assert_pstr_eq(codec_guess(all[i].bytes, all[i].len), all[i].words);
    }
}

/* ---- replies ----------------------------------------------------------------------- */

/* What was parsed, as text: kinds with what belongs to them, the bytes of a value run
 * together. */
struct reported {
    char text[1024];
    size_t len;
    bool in_data;
};

static void
tell(struct reported *t, const struct client_reply *reply)
{
    char *at = t->text + t->len;
    size_t room = sizeof t->text - t->len;
    if (reply->kind == CLIENT_DATA) {
        ck_assert_uint_gt(reply->text_len, 0);
        t->len += (size_t)snprintf(at, room, "%s%.*s", t->in_data ? "" : "=",
                                   (int)reply->text_len, reply->text);
        t->in_data = true;
        return;
    }
    t->in_data = false;
    if (t->len > 0) {
        *at++ = ' ';
        room--;
        t->len++;
    }
    size_t n = (size_t)snprintf(at, room, "%s", client_kind_name(reply->kind));
    if (reply->kind == CLIENT_VALUE && reply->key != NULL) {
        n += (size_t)snprintf(at + n, room - n, "(%.*s,%u,%ju", (int)reply->key_len,
                              reply->key, reply->flags, (uintmax_t)reply->value_len);
        n += reply->has_cas
                 ? (size_t)snprintf(at + n, room - n, ",%ju)", (uintmax_t)reply->cas)
                 : (size_t)snprintf(at + n, room - n, ")");
    } else if (reply->kind == CLIENT_VALUE) {
        n += (size_t)snprintf(at + n, room - n, "(#%u,%jd)", reply->index,
                              (intmax_t)reply->value_len);
    } else if (reply->kind == CLIENT_NUMBER) {
        n += (size_t)snprintf(at + n, room - n, "(%jd)", (intmax_t)reply->number);
    }
    if (reply->is_last) {
        n += (size_t)snprintf(at + n, room - n, "!");
    }
    t->len += n;
}

/* Parses one piece; false when the parser is broken. */
static bool
feed(const struct codec *codec, struct codec_parser *p, const struct codec_expect *expect,
     const char *bytes, size_t len, struct reported *t)
{
    struct client_reply reply;
    char *copy = malloc(len > 0 ? len : 1); /* so that reads beyond it are seen */
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, len);
    size_t at = 0;
    do {
        size_t taken = codec_parse(codec, p, expect, copy + at, len - at, &reply);
        ck_assert_uint_le(taken, len - at);
        at += taken;
        if (reply.kind != CLIENT_MORE) {
            tell(t, &reply);
        }
    } while (reply.kind != CLIENT_MORE && reply.kind != CLIENT_DESYNC);
    ck_assert(reply.kind == CLIENT_DESYNC || at == len);
    free(copy);
    return reply.kind != CLIENT_DESYNC;
}

#define REPLY(opcode, key, extras, status, body)                                         \
    "\x81" opcode "\0" key extras "\0" status "\0\0\0" body "mcld\0\0\0\0\0\0\0\x2a"
#define HTTP "HTTP/1.1 200 OK\r\n"

static const struct {
    const struct codec *codec;
    enum codec_verb verb;
    unsigned keys;
    const char *bytes;
    size_t len;
    const char *expected;
} replies[] = {
    {&codec_ascii, CODEC_GET, 1, BYTES("VALUE a 5 2\r\nhi\r\nEND\r\nEND\r\n"),
     "VALUE(a,5,2)=hi END END"},

    {&codec_meta, CODEC_GET, 1, BYTES("VA 2 ka f5\r\nhi\r\nEN\r\n"),
     "VALUE(a,5,2)=hi END END"},
    {&codec_meta, CODEC_GET, 1, BYTES("VA 0 ka f0\r\n\r\n"), "VALUE(a,0,0) END"},
    {&codec_meta, CODEC_GETS, 1, BYTES("VA 2 ka f0 c42\r\n\r\n\r\n"),
     "VALUE(a,0,2,42)=\r\n END"},
    {&codec_meta, CODEC_GET, 3,
     BYTES("VA 2 ka f5\r\nhi\r\nVA 1 kef f0 s1 t-1\r\nx\r\nMN\r\nMN\r\n"),
     "VALUE(a,5,2)=hi VALUE(ef,0,1)=x END END"},
    {&codec_meta, CODEC_GET, 2,
     BYTES("VA 2 ka f5\r\nhi\r\nSERVER_ERROR no\r\nMN\r\nMN\r\n"),
     "VALUE(a,5,2)=hi SERVER_ERROR END"},
    {&codec_meta, CODEC_GET, 2, BYTES("ERROR\r\nERROR\r\nERROR\r\n"), "ERROR"},
    {&codec_meta, CODEC_GET, 1, BYTES("CLIENT_ERROR bad\r\nEN\r\n"), "CLIENT_ERROR END"},
    {&codec_meta, CODEC_GET, 1, BYTES("HD\r\nMN\r\nNF\r\n"), "OK OK NOT_FOUND"},
    {&codec_meta, CODEC_GET, 1, BYTES("VA 2 f5\r\nhi\r\n"), "desync"},
    {&codec_meta, CODEC_GET, 1, BYTES("VA x ka\r\n"), "desync"},
    {&codec_meta, CODEC_GET, 1, BYTES("VA 1 ka\r\nab\r\n"), "VALUE(a,0,1)=a desync"},
    {&codec_meta, CODEC_GET, 1, BYTES("VA 1 ka  \r\nab\r\n"), "desync"},
    {&codec_meta, CODEC_GET, 1, BYTES("VALUE a 0 1\r\n"), "desync"},
    {&codec_meta, CODEC_SET, 1, BYTES("HD\r\nNS\r\nNF\r\nEX\r\nVA 1 ka\r\n"),
     "STORED NOT_STORED NOT_FOUND EXISTS desync"},
    {&codec_meta, CODEC_DELETE, 1, BYTES("HD\r\nNF\r\nSERVER_ERROR busy\r\n"),
     "DELETED NOT_FOUND SERVER_ERROR"},
    {&codec_meta, CODEC_TOUCH, 1, BYTES("HD\r\nEN\r\n"), "TOUCHED NOT_FOUND"},
    {&codec_meta, CODEC_INCR, 1, BYTES("VA 2\r\n31\r\nNF\r\nVA 3\r\n1  \r\n"),
     "number(31) NOT_FOUND number(1)"},
    {&codec_meta, CODEC_DECR, 1, BYTES("VA 2\r\n31\r\nNF\r\n"), "number(31) NOT_FOUND"},
    {&codec_meta, CODEC_APPEND, 1, BYTES("HD\r\nNS\r\n"), "STORED NOT_STORED"},
    {&codec_binary, CODEC_REPLACE, 1, BYTES(REPLY("\x03", "\0", "\0", "\0\1", "\0")),
     "NOT_STORED"},
    {&codec_binary, CODEC_PREPEND, 1, BYTES(REPLY("\x0f", "\0", "\0", "\0\5", "\0")),
     "NOT_STORED"},
    {&codec_meta, CODEC_INCR, 1, BYTES("VA 3\r\n31\r\n"), "desync"},
    {&codec_meta, CODEC_INCR, 1, BYTES("VA 2\r\n3x\r\n"), "desync"},
    {&codec_meta, CODEC_AUTH, 1, BYTES("STORED\r\nCLIENT_ERROR no\r\n"),
     "STORED CLIENT_ERROR"},

    {&codec_binary, CODEC_GET, 1,
     BYTES(REPLY("\x0c", "\1", "\4", "\0\0", "\7") "\0\0\0\5ahi" REPLY(
         "\x0c", "\0", "\0", "\0\1", "\x09") "Not found"),
     "VALUE(a,5,2,42)=hi END END"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x0c", "\1", "\0", "\0\1", "\1") "a"),
     "END"},
    {&codec_binary, CODEC_GET, 1,
     BYTES(REPLY("\x0c", "\1", "\4", "\0\0", "\5") "\0\0\0\0a"), "VALUE(a,0,0,42) END"},
    {&codec_binary, CODEC_GET, 3,
     BYTES(REPLY("\x0d", "\1", "\4", "\0\0", "\7") "\0\0\0\5ahi" REPLY(
         "\x0d", "\2", "\4", "\0\0", "\7") "\0\0\0\0efx" REPLY("\x0a", "\0", "\0", "\0\0",
                                                               "\0")),
     "VALUE(a,5,2,42)=hi VALUE(ef,0,1,42)=x END"},
    {&codec_binary, CODEC_GET, 2,
     BYTES(REPLY("\x0d", "\0", "\0", "\0\x82", "\3") "oom" REPLY(
         "\x0d", "\1", "\4", "\0\0", "\6") "\0\0\0\0ax" REPLY("\x0a", "\0", "\0", "\0\0",
                                                              "\0")),
     "VALUE(a,0,1,42)=x SERVER_ERROR"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x01", "\0", "\0", "\0\0", "\0")), "OK"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x0c", "\0", "\0", "\0\x81", "\3") "huh"),
     "ERROR"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x0c", "\0", "\0", "\0\x20", "\0")),
     "CLIENT_ERROR"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x0c", "\1", "\0", "\0\0", "\1") "a"),
     "desync"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x0c", "\x09", "\4", "\0\0", "\x0c")),
     "desync"},
    {&codec_binary, CODEC_GET, 1, BYTES("VALUE a 0 1\r\nx\r\nEND\r\nmore"), "desync"},
    {&codec_binary, CODEC_GET, 1, BYTES("huh?"), "desync"},
    {&codec_binary, CODEC_GET, 1, BYTES(REPLY("\x0c", "\0", "\0", "\0\x84", "\0")),
     "SERVER_ERROR"},
    {&codec_binary, CODEC_GET, 1,
     BYTES("\x81\x0c\0\0\0\0\0\1\0\0\0\0xxxx\0\0\0\0\0\0\0\0"), "desync"},
    {&codec_binary, CODEC_SET, 1,
     BYTES(REPLY("\1", "\0", "\0", "\0\0", "\0") REPLY(
         "\1", "\0", "\0", "\0\2", "\2") "no" REPLY("\1", "\0", "\0", "\0\1", "\0")
               REPLY("\1", "\0", "\0", "\0\5", "\0")
                   REPLY("\1", "\0", "\0", "\0\3", "\0")),
     "STORED EXISTS NOT_FOUND NOT_STORED SERVER_ERROR"},
    {&codec_binary, CODEC_ADD, 1, BYTES(REPLY("\2", "\0", "\0", "\0\2", "\0")),
     "NOT_STORED"},
    {&codec_binary, CODEC_DELETE, 1,
     BYTES(REPLY("\4", "\0", "\0", "\0\0", "\0") REPLY("\4", "\0", "\0", "\0\1", "\0")),
     "DELETED NOT_FOUND"},
    {&codec_binary, CODEC_TOUCH, 1, BYTES(REPLY("\x1c", "\0", "\0", "\0\0", "\0")),
     "TOUCHED"},
    {&codec_binary, CODEC_INCR, 1,
     BYTES(REPLY("\5", "\0", "\0", "\0\0",
                 "\x08") "\0\0\0\0\0\0\1\1" REPLY("\5", "\0", "\0", "\0\6", "\0")),
     "number(257) CLIENT_ERROR"},
    {&codec_binary, CODEC_INCR, 1,
     BYTES(REPLY("\5", "\0", "\0", "\0\0", "\7") "\0\0\0\0\0\0\1"), "desync"},
    {&codec_binary, CODEC_AUTH, 1,
     BYTES(REPLY("\x21", "\0", "\0", "\0\0", "\x0d") "Authenticated" REPLY(
         "\x21", "\0", "\0", "\0\x20", "\x0d") "Auth failure."),
     "STORED CLIENT_ERROR"},

    {&codec_redis, CODEC_GET, 1, BYTES("$2\r\nhi\r\n$-1\r\n$0\r\n\r\n"),
     "VALUE(#0,2)=hi END END VALUE(#0,0) END"},
    {&codec_redis, CODEC_GET, 3,
     BYTES("*3\r\n$-1\r\n$2\r\nhi\r\n$1\r\n\n\r\n*3\r\n$-1\r\n$-1\r\n$-1\r\n"),
     "VALUE(#1,2)=hi VALUE(#2,1)=\n END END"},
    {&codec_redis, CODEC_GET, 2,
     BYTES("*2\r\n-ERR no\r\n$2\r\nhi\r\n*2\r\n$-1\r\n$-1\r\n"),
     "VALUE(#1,2)=hi ERROR END"},
    {&codec_redis, CODEC_GET, 2, BYTES("-MOVED 3999 127.0.0.1:6381\r\n"), "ERROR"},
    {&codec_redis, CODEC_GET, 1, BYTES("-ERR unknown\r\n+OK\r\n:1\r\n"), "ERROR OK OK"},
    {&codec_redis, CODEC_GET, 2, BYTES("*3\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 2, BYTES("$1\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 2, BYTES("*-1\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 2, BYTES("*2\r\n*2\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 1, BYTES("*1\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 1, BYTES("$-2\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 1, BYTES("$2\r\nhix\r\n"), "VALUE(#0,2)=hi desync"},
    {&codec_redis, CODEC_GET, 1, BYTES("\r\n"), "desync"},
    {&codec_redis, CODEC_GET, 1, BYTES("END\r\n"), "desync"},
    {&codec_redis, CODEC_SET, 1, BYTES("+OK\r\n-OOM command not allowed\r\n$2\r\n"),
     "STORED ERROR desync"},
    {&codec_redis, CODEC_ADD, 1, BYTES("$-1\r\n+OK\r\n"), "NOT_STORED STORED"},
    {&codec_redis, CODEC_DELETE, 1, BYTES(":1\r\n:0\r\n+OK\r\n"), "DELETED NOT_FOUND OK"},
    {&codec_redis, CODEC_TOUCH, 1, BYTES(":1\r\n:0\r\n:x\r\n"),
     "TOUCHED NOT_FOUND desync"},
    {&codec_redis, CODEC_INCR, 1, BYTES(":-5\r\n"), "number(-5)"},
    {&codec_redis, CODEC_AUTH, 1, BYTES("+OK\r\n-WRONGPASS no\r\n"), "STORED ERROR"},

    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Server: x\r\nContent-Length: 2\r\n\r\nhi" HTTP
                "content-length:0 \r\n\r\n"),
     "VALUE(#0,2)=hi END VALUE(#0,0) END"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n"
                "0\r\nTrailer: 1\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
     "VALUE(#0,-1)=abc0123456789 END VALUE(#0,0) END"},
    {&codec_http, CODEC_GET, 1,
     BYTES("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope"
           "HTTP/1.1 410\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"),
     "END END"},
    {&codec_http, CODEC_GET, 1,
     BYTES("HTTP/1.1 100 Continue\r\n\r\n" HTTP "Content-Length: 1\r\n\r\nx"),
     "VALUE(#0,1)=x END"},
    {&codec_http, CODEC_GET, 1,
     BYTES("HTTP/1.1 403 No\r\nContent-Length: 1\r\n\r\nx"
           "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
           "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"
           "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
     "CLIENT_ERROR SERVER_ERROR OK OK"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Connection: close\r\nContent-Length: 1\r\n\r\nx"), "VALUE(#0,1)=x END!"},
    {&codec_http, CODEC_GET, 1,
     BYTES("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"
           "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx"),
     "VALUE(#0,1)=x END! VALUE(#0,1)=x END"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Connection: keep-alive , Close\r\nContent-Length: 1\r\n\r\nx"),
     "VALUE(#0,1)=x END!"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "connection:close\r\nConnection: Upgrade,keep-alive\r\n"
                "Content-Length: 0\r\n\r\n"),
     "VALUE(#0,0) END!"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Connection: closed, ,\r\nContent-Length: 0\r\n\r\n"), "VALUE(#0,0) END"},
    {&codec_http, CODEC_GET, 1, BYTES(HTTP "\r\nx"), "desync"},
    {&codec_http, CODEC_GET, 1, BYTES(HTTP "Content-Length: x\r\n"), "desync"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Content-Length: 1\r\nContent-Length: 2\r\n\r\n"), "desync"},
    {&codec_http, CODEC_GET, 1, BYTES(HTTP "Transfer-Encoding: gzip\r\n"), "desync"},
    {&codec_http, CODEC_GET, 1, BYTES(HTTP "Transfer-Encoding: chunked\r\n\r\n1g\r\n"),
     "VALUE(#0,-1) desync"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n"),
     "VALUE(#0,-1)=x desync"},
    {&codec_http, CODEC_GET, 1,
     BYTES(HTTP "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"),
     "VALUE(#0,-1) desync"},
    {&codec_http, CODEC_GET, 1, BYTES("HTTP/2 200 OK\r\n"), "desync"},
    {&codec_http, CODEC_GET, 1, BYTES("HTTP/1.1 99 OK\r\n"), "desync"},
    {&codec_http, CODEC_GET, 1, BYTES("HTTP/1.1 600 OK\r\n"), "desync"},
    {&codec_http, CODEC_GET, 1, BYTES(HTTP "no header\r\n"), "desync"},
};

static void
check_reply(int row, const struct reported *t)
{
    ck_assert_msg(strcmp(t->text, replies[row].expected) == 0, "%s %d: %s, not %s",
                  replies[row].codec->name, row, t->text, replies[row].expected);
}

TEST_LOOP(test_cut_in_two, COUNT(replies))
{
    const struct codec *codec = replies[_i].codec;
    struct codec_expect expect = {replies[_i].verb, replies[_i].keys};
    for (size_t cut = 0; cut <= replies[_i].len; cut++) {
        struct codec_parser p;
        struct reported t = {.len = 0};
        codec_parser_init(&p);
        if (feed(codec, &p, &expect, replies[_i].bytes, cut, &t)) {
            bool goes_on = feed(codec, &p, &expect, replies[_i].bytes + cut,
                                replies[_i].len - cut, &t);
            ck_assert(!goes_on || client_parser_is_idle(&p.text));
        }
        check_reply(_i, &t);
    }
}

TEST_LOOP(test_byte_by_byte, COUNT(replies))
{
    const struct codec *codec = replies[_i].codec;
    struct codec_expect expect = {replies[_i].verb, replies[_i].keys};
    struct codec_parser p;
    struct reported t = {.len = 0};
    codec_parser_init(&p);
    for (size_t i = 0; i < replies[_i].len; i++) {
        if (!feed(codec, &p, &expect, replies[_i].bytes + i, 1, &t)) {
            break;
        }
    }
    check_reply(_i, &t);
}

/* A line without end is given up; the parser stays broken. */
TEST(test_endless_line)
{
    static const struct codec *const lines[] = {&codec_ascii, &codec_meta, &codec_redis,
                                                &codec_http};
    struct codec_expect expect = {CODEC_GET, 1};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct codec_parser p;
        struct reported t = {.len = 0};
        codec_parser_init(&p);
        size_t n = 0;
        while (feed(lines[i], &p, &expect, "-", 1, &t)) {
            ck_assert_uint_le(++n, CLIENT_LINE_MAX);
        }
        ck_assert_str_eq(t.text, "desync");
        ck_assert(!feed(lines[i], &p, &expect, BYTES("\r\nEND\r\n"), &t));
    }
}
