/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The binary codec: each opcode with all lengths that its header may claim, headers that lie,
 * requests that arrive in pieces, replies as bytes.
 */
#include "proto/binary.h"

#include <stdarg.h>

#include "base/rng.h"
#include "check_main.h"
#include "check_output.h"

#define RESULT_MAX 128
#define OPCODES 256
#define SHARDS 8
#define OPAQUE 0xdeadbeefu
#define CAS UINT64_C(0x0102030405060708)

/* ---- requests ------------------------------------------------------------------------- */

/* A request as its header describes it; the bytes behind are 'e', 'k' and 'v'. */
struct shape {
    unsigned opcode, extras, key;
    uint32_t value;
};

static void
add_header(struct text *t, unsigned opcode, unsigned key, unsigned extras, uint32_t body)
{
    text_add_be(t, 0x80, 1);
    text_add_be(t, opcode, 1);
    text_add_be(t, key, 2);
    text_add_be(t, extras, 1);
    text_add_be(t, 0x77, 1);   /* data type: not looked at */
    text_add_be(t, 0x1234, 2); /* vbucket: likewise */
    text_add_be(t, body, 4);
    text_add_be(t, OPAQUE, 4);
    text_add_be(t, CAS, 8);
}

static const char filler[65536];

static void
add_bytes(struct text *t, char byte, size_t n)
{
    size_t at = t->len;
    text_add(t, filler, n);
    memset(t->p + at, byte, n);
}

static struct text
request_of(const struct shape *shape)
{
    struct text t = {.p = NULL};
    add_header(&t, shape->opcode, shape->key, shape->extras,
               shape->extras + shape->key + shape->value);
    add_bytes(&t, 'e', shape->extras);
    add_bytes(&t, 'k', shape->key);
    add_bytes(&t, 'v', shape->value);
    return t;
}

static const char *const reply_names[REPLY_COUNT] = {
#define REPLY(id, text) [REPLY_##id] = #id,
#include "proto/reply.def"
#undef REPLY
};

static const char *const verb_names[VERB_COUNT] = {
#define VERB(id, wire, family, min, max, noreply) [VERB_##id] = #id,
#include "proto/verb.def"
#undef VERB
};

/* What the parser made of p[0..n), which lies in a block of exactly that size. */
static struct parse
parse(const char *p, size_t n, enum profile profile, struct req *req, char *result)
{
    memset(req, 0xa5, sizeof *req); /* nothing of an earlier request shows */
    req->protocol = PROTOCOL_BINARY;
    char *copy = exact_copy(p, n);
    struct parse parsed = binary_parse(copy, n, rules_of(profile), req);
    expect(parsed.consumed <= n && !parsed.is_quiet && !parsed.skips_line);
    expect(req->protocol == PROTOCOL_BINARY);
    switch (parsed.status) {
    case PARSE_DONE:
        expect(req->key.len == 0 ||
               (req->key.p >= copy && req->key.p + req->key.len <= copy + n));
        expect(req->value.len == 0 ||
               (req->value.p >= copy && req->value.p + req->value.len <= copy + n));
        expect(!req->is_noreply && !req->is_open && !req->has_keys && req->keys == 1);
        snprintf(result, RESULT_MAX, "%s%s%s", verb_names[req->verb],
                 req->is_quiet ? " quiet" : "", req->wants_key ? " key" : "");
        break;
    case PARSE_MORE:
        snprintf(result, RESULT_MAX, "MORE");
        break;
    case PARSE_CLOSE:
        snprintf(result, RESULT_MAX, "CLOSE");
        break;
    case PARSE_BAD:
        snprintf(result, RESULT_MAX, "BAD %s%s swallow=%llu", reply_names[parsed.reply],
                 parsed.closes ? " close" : "", (unsigned long long)parsed.swallow);
        break;
    }
    free(copy);
    return parsed;
}

/* ---- opcodes -------------------------------------------------------------------------- */

struct opcode_row {
    const char *expected;
    const char *extras; /* allowed lengths */
    char key, value;    /* '-' none, '+' some, '?' either */
};

/* Spelled out here once more, from the protocol's description. */
static const struct opcode_row opcode_rows[OPCODES] = {
    [0x00] = {"GET", "0", '+', '-'},
    [0x01] = {"SET", "8", '+', '?'},
    [0x02] = {"ADD", "8", '+', '?'},
    [0x03] = {"REPLACE", "8", '+', '?'},
    [0x04] = {"DELETE", "0", '+', '-'},
    [0x05] = {"INCR", "20", '+', '-'},
    [0x06] = {"DECR", "20", '+', '-'},
    [0x07] = {"QUIT", "0", '-', '-'},
    [0x08] = {"FLUSH_ALL", "0 4", '-', '-'},
    [0x09] = {"GET quiet", "0", '+', '-'},
    [0x0a] = {"NOOP", "0", '-', '-'},
    [0x0b] = {"VERSION", "0", '-', '-'},
    [0x0c] = {"GET key", "0", '+', '-'},
    [0x0d] = {"GET quiet key", "0", '+', '-'},
    [0x0e] = {"APPEND", "0", '+', '?'},
    [0x0f] = {"PREPEND", "0", '+', '?'},
    [0x10] = {"STATS", "0", '?', '-'},
    [0x11] = {"SET quiet", "8", '+', '?'},
    [0x12] = {"ADD quiet", "8", '+', '?'},
    [0x13] = {"REPLACE quiet", "8", '+', '?'},
    [0x14] = {"DELETE quiet", "0", '+', '-'},
    [0x15] = {"INCR quiet", "20", '+', '-'},
    [0x16] = {"DECR quiet", "20", '+', '-'},
    [0x17] = {"QUIT quiet", "0", '-', '-'},
    [0x18] = {"FLUSH_ALL quiet", "0 4", '-', '-'},
    [0x19] = {"APPEND quiet", "0", '+', '?'},
    [0x1a] = {"PREPEND quiet", "0", '+', '?'},
    [0x1c] = {"TOUCH", "4", '+', '-'},
    [0x1d] = {"GAT", "4", '+', '-'},
    [0x1e] = {"GAT quiet", "4", '+', '-'},
    [0x20] = {"SASL_LIST", "0", '-', '-'},
    [0x21] = {"SASL_AUTH", "0", '+', '?'},
    [0x22] = {"SASL_STEP", "0", '+', '?'},
    [0x23] = {"GAT key", "4", '+', '-'},
    [0x24] = {"GAT quiet key", "4", '+', '-'},
};

static bool
allows_extras(const char *list, unsigned extras)
{
    for (const char *p = list; *p != '\0'; p += strcspn(p, " "), p += *p == ' ') {
        if (strtoul(p, NULL, 10) == extras) {
            return true;
        }
    }
    return false;
}

static bool
allows(char rule, size_t len)
{
    return rule == '?' || (rule == '+') == (len > 0);
}

static void
expect_shape(const struct shape *shape, const char *result)
{
    const struct opcode_row *row = &opcode_rows[shape->opcode];
    char expected[RESULT_MAX];
    if (shape->key > REQ_KEY_MAX) {
        snprintf(expected, sizeof expected, "BAD BAD_FORMAT close swallow=0");
    } else if (row->expected == NULL) {
        snprintf(expected, sizeof expected, "BAD ERROR swallow=%u",
                 shape->extras + shape->key + shape->value);
    } else if (!allows_extras(row->extras, shape->extras) ||
               !allows(row->key, shape->key) || !allows(row->value, shape->value)) {
        snprintf(expected, sizeof expected, "BAD BAD_FORMAT close swallow=0");
    } else if (strncmp(row->expected, "SASL", 4) == 0 && shape->key > 32) {
        snprintf(expected, sizeof expected, "BAD BAD_FORMAT swallow=%u",
                 shape->extras + shape->key + shape->value);
    } else {
        snprintf(expected, sizeof expected, "%s", row->expected);
    }
    if (strcmp(result, expected) != 0) {
        ck_abort_msg("opcode %02x extras %u key %u value %u: %s, not %s", shape->opcode,
                     shape->extras, shape->key, shape->value, result, expected);
    }
}

/* Header first: an error is told as soon as the header is there. */
static void
check_shape(const struct shape *shape)
{
    SCOPED(text_free) struct text t = request_of(shape);
    struct req req;
    char result[RESULT_MAX];
    struct parse parsed = parse(t.p, t.len, PROFILE_14, &req, result);
    expect_shape(shape, result);
    expect(req.opaque == OPAQUE && req.compare == CAS && req.opcode == shape->opcode);
    if (parsed.status == PARSE_BAD) {
        expect(parsed.consumed == BINARY_HEADER_BYTES);
        parsed = parse(t.p, BINARY_HEADER_BYTES, PROFILE_14, &req, result);
        expect_shape(shape, result);
    } else {
        bool streams = req.family == FAMILY_STORE;
        expect(parsed.consumed == t.len - (streams ? shape->value : 0));
        expect(req.key.len == shape->key);
        expect(!streams || req.value_len == shape->value);
    }
}

FIXTURE(set_up_chain, tear_down_chain);

TEST_LOOP(test_shapes, SHARDS)
{
    static const unsigned keys[] = {0, 1, 32, 33, 250, 251, 65535};
    static const uint32_t values[] = {0, 1, 8192};
    for (unsigned opcode = (unsigned)_i; opcode < OPCODES; opcode += SHARDS) {
        for (unsigned extras = 0; extras < 26; extras++) {
            for (unsigned k = 0; k < sizeof keys / sizeof keys[0]; k++) {
                for (unsigned v = 0; v < sizeof values / sizeof values[0]; v++) {
                    check_shape(&(struct shape){opcode, extras < 25 ? extras : 255,
                                                keys[k], values[v]});
                }
            }
        }
    }
}

/* ---- headers that lie ------------------------------------------------------------------ */

#define INCONSISTENT "BAD ERROR close swallow=0", NULL
#define INVALID "BAD BAD_FORMAT close swallow=0"

static const struct {
    unsigned opcode, key, extras;
    uint32_t body;
    const char *old; /* 1.4 */
    const char *now; /* 1.6; NULL: the same */
} header_rows[] = {
    {0x00, 5, 0, 1, INCONSISTENT},
    {0x00, 0xffff, 0, 0, INCONSISTENT},
    {0x00, 0xffff, 0xff, 0xffff, INCONSISTENT},
    {0x01, 1, 8, 4, INCONSISTENT},
    {0x01, 1, 8, 8, INCONSISTENT}, /* one byte short */
    {0x01, 250, 8, 0, INCONSISTENT},
    {0x0e, 4, 0, 3, INCONSISTENT},
    {0x19, 0xffff, 0, 1, INCONSISTENT},
    {0x21, 0x8000, 0, 10, INCONSISTENT},
    {0x77, 5, 0, 1, INCONSISTENT},
    {0x0a, 0, 1, 0, INCONSISTENT},
    {0x12, 1, 8, 0xffffffe8u, INVALID, NULL}, /* sign error of old */
    {0x01, 1, 8, 0xffffffffu, INVALID, NULL},
    {0x01, 1, 8, 0x80000000u, INVALID, NULL},
    {0x01, 1, 8, 0x7fffffffu, "SET", INVALID},
    {0x01, 1, 8, 0x40000001u, "SET", INVALID},
    {0x01, 1, 8, 0x40000000u, "SET", NULL},
    {0x00, 1, 0, 0x7fffffffu, INVALID, NULL},
    {0x00, 1, 21, 22, INVALID, NULL},
    {0x05, 1, 255, 256, INVALID, NULL},
    {0x50, 1, 0, 0x7fffffffu, "BAD ERROR swallow=2147483647", INVALID},
    {0x50, 3, 2, 9, "BAD ERROR swallow=9", NULL},
    {0x21, 40, 0, 60, "BAD BAD_FORMAT swallow=60", NULL},
    {0x21, 5, 0, 5 + 8193, "BAD BAD_FORMAT swallow=8198", NULL},
    {0x21, 5, 0, 5 + 8192, "MORE", NULL},
};

TEST_ROWS(test_headers, header_rows, row->old)
{
    SCOPED(text_free) struct text t = {.p = NULL};
    struct req req;
    char result[RESULT_MAX];
    add_header(&t, row->opcode, row->key, row->extras, row->body);
    bool has_key = row->old[0] == 'S';
    add_bytes(&t, 'x', has_key ? row->extras + row->key : 0);
    parse(t.p, t.len, PROFILE_14, &req, result);
    ck_assert_str_eq(result, row->old);
    parse(t.p, t.len, PROFILE_16, &req, result);
    ck_assert_str_eq(result, row->now != NULL ? row->now : row->old);
}

TEST(test_magic)
{
    SCOPED(text_free) struct text t = request_of(&(struct shape){0x0a, 0, 0, 0});
    for (unsigned magic = 0; magic < 256; magic++) {
        struct req req;
        char result[RESULT_MAX];
        t.p[0] = (char)(uint8_t)magic;
        for (size_t n = 0; n < BINARY_HEADER_BYTES; n++) {
            parse(t.p, n, PROFILE_14, &req, result);
            ck_assert_str_eq(result, "MORE"); /* whatever it is, it may be told later */
        }
        parse(t.p, BINARY_HEADER_BYTES, PROFILE_14, &req, result);
        ck_assert_str_eq(result, magic == 0x80 ? "NOOP" : "CLOSE");
    }
}

/* ---- what is read --------------------------------------------------------------------- */

/* Every prefix of a valid request needs more; all of it, and more behind it, is done. */
static void
check_prefixes(unsigned opcode, const struct opcode_row *row)
{
    unsigned extras = (unsigned)strtoul(
        strrchr(row->extras, ' ') != NULL ? strrchr(row->extras, ' ') : row->extras, NULL,
        10);
    struct shape shape = {opcode, extras, row->key == '-' ? 0 : 32,
                          row->value == '-' ? 0 : 5};
    SCOPED(text_free) struct text t = request_of(&shape);
    struct req req;
    char result[RESULT_MAX];
    size_t whole = parse(t.p, t.len, PROFILE_14, &req, result).consumed;
    ck_assert_str_eq(result, row->expected);
    for (size_t n = 0; n < whole; n++) {
        parse(t.p, n, PROFILE_14, &req, result);
        ck_assert_str_eq(result, "MORE");
    }
    text_add(&t, "\x80more", 5);
    ck_assert_uint_eq(parse(t.p, t.len, PROFILE_14, &req, result).consumed, whole);
}

TEST(test_prefixes)
{
    for (unsigned opcode = 0; opcode < OPCODES; opcode++) {
        if (opcode_rows[opcode].expected != NULL) {
            check_prefixes(opcode, &opcode_rows[opcode]);
        }
    }
}

static struct req
parse_bytes(const char *p, size_t n)
{
    static char bytes[512];
    struct req req = {.protocol = PROTOCOL_BINARY};
    memcpy(bytes, p, n);
    struct parse parsed = binary_parse(bytes, n, rules_of(PROFILE_14), &req);
    ck_assert_int_eq(parsed.status, PARSE_DONE);
    return req;
}

#define HEAD(op, key, extras, body)                                                      \
    "\x80" op "\0" key extras "\0\0\0\0\0\0" body "\1\2\3\4\0\0\0\0\0\0\0\7"

/* A request of which nothing is understood has none of what the last one had. */
TEST(test_bad_request_has_no_key)
{
    static const char get[] = HEAD("\x00", "\x03", "\0", "\x03") "foo";
    static const char bad[] = HEAD("\x00", "\0", "\x01", "\x01") "x";
    struct req req = parse_bytes(get, sizeof get - 1);
    ck_assert_uint_eq(req.key.len, 3);
    struct parse parsed = binary_parse(bad, sizeof bad - 1, rules_of(PROFILE_14), &req);
    ck_assert_int_eq(parsed.status, PARSE_BAD);
    ck_assert_uint_eq(req.key.len, 0);
}

TEST(test_fields)
{
    static const char set[] =
        HEAD("\x01", "\x03", "\x08", "\x0d") "\xde\xad\xbe\xef\xff\xff\xff\xfe"
                                             "a\0bxy";
    struct req req = parse_bytes(set, sizeof set - 1);
    ck_assert_uint_eq(req.flags, 0xdeadbeefu);
    ck_assert_int_eq(req.exptime, 0xfffffffeLL);
    ck_assert_uint_eq(req.value_len, 2);
    ck_assert_uint_eq(req.opaque, 0x01020304u);
    ck_assert_uint_eq(req.compare, 7);
    ck_assert_uint_eq(req.key.len, 3);
    ck_assert_mem_eq(req.key.p, "a\0b", 3);
    static const char incr[] =
        HEAD("\x05", "\x01", "\x14", "\x15") "\1\2\3\4\5\6\7\x08"
                                             "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\nk";
    req = parse_bytes(incr, sizeof incr - 1);
    ck_assert_uint_eq(req.number, CAS);
    ck_assert_uint_eq(req.initial, UINT64_MAX);
    ck_assert_int_eq(req.exptime, 10);
    ck_assert(req.creates);
    static const char decr[] =
        HEAD("\x16", "\x01", "\x14",
             "\x15") "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\xff\xff\xff\xffk";
    req = parse_bytes(decr, sizeof decr - 1);
    ck_assert(!req.creates);
    static const char stat[] = HEAD("\x10", "\x0c", "\0", "\x0c") " detail  on ";
    req = parse_bytes(stat, sizeof stat - 1);
    ck_assert_uint_eq(req.words, 3);
    ck_assert(req_word_is(req.word[1], "detail"));
    ck_assert(req_word_is(req.word[2], "on"));
    static const char many[] = HEAD("\x10", "\x14", "\0", "\x14") "a b c d e f g h i j ";
    req = parse_bytes(many, sizeof many - 1);
    ck_assert_uint_eq(req.words, 11);
    ck_assert(req_word_is(req.word[REQ_WORDS_MAX - 1], "g"));
    static const char flush[] = HEAD("\x08", "\0", "\x04", "\x04") "\0\0\0\x05";
    req = parse_bytes(flush, sizeof flush - 1);
    ck_assert_int_eq(req.exptime, 5);
    static const char auth[] = HEAD("\x21", "\x05", "\0", "\x0a") "PLAIN\0u\0p!";
    req = parse_bytes(auth, sizeof auth - 1);
    ck_assert(req_word_is(req.key, "PLAIN"));
    ck_assert_uint_eq(req.value.len, 5);
    ck_assert_mem_eq(req.value.p, "\0u\0p!", 5);
}

/* Any bytes in a block of any size: whatever is made of them stays inside. */
TEST_LOOP(test_garbage, 4)
{
    struct rng rng = rng_of(31, (uint64_t)_i);
    for (unsigned round = 0; round < 20000; round++) {
        char bytes[320];
        size_t n = (size_t)rng_below(&rng, sizeof bytes + 1);
        for (size_t i = 0; i < n; i++) {
            bool is_small = rng_below(&rng, 2) == 0;
            bytes[i] = (char)(uint8_t)rng_below(&rng, is_small ? 4 : 256);
        }
        if (n > 1 && rng_below(&rng, 8) != 0) {
            bytes[0] = (char)0x80;
            bytes[1] = (char)(uint8_t)rng_below(&rng, 40);
        }
        struct req req;
        char result[RESULT_MAX];
        parse(bytes, n, (enum profile)(round % 2), &req, result);
    }
}

/* ---- replies -------------------------------------------------------------------------- */

#define CHECK_OUTPUT(bytes) check_output(bytes, sizeof(bytes) - 1)
#define ANSWERS(req, reply, bytes)                                                       \
    do {                                                                                 \
        put(req, reply);                                                                 \
        CHECK_OUTPUT(bytes);                                                             \
    } while (0)
#define OUT(op, key, extras, status, body, cas)                                          \
    "\x81" op key extras "\0" status "\0\0\0" body "\xde\xad\xbe\xef\0\0\0\0\0\0\0" cas

#define ERR(op, status, body) OUT(op, "\0\0", "\0", status, body, "\0")

static struct req
req_of(uint8_t opcode, enum verb verb, enum verb_family family)
{
    return (struct req){.protocol = PROTOCOL_BINARY,
                        .verb = verb,
                        .family = family,
                        .opcode = opcode,
                        .opaque = OPAQUE,
                        .key = {"key", 3}};
}

static void
put(const struct req *req, enum reply reply)
{
    ck_assert(binary_put_reply(&chain, &env, req, reply, 9));
}

TEST(test_mutation_replies)
{
    struct req set = req_of(0x01, VERB_SET, FAMILY_STORE);
    ANSWERS(&set, REPLY_STORED, OUT("\x01", "\0\0", "\0", "\0\0", "\0", "\x09"));
    ANSWERS(&set, REPLY_EXISTS, ERR("\x01", "\0\2", "\x14") "Data exists for key.");
    ANSWERS(&set, REPLY_NOT_FOUND, ERR("\x01", "\0\1", "\x09") "Not found");
    ANSWERS(&set, REPLY_TOO_LARGE, ERR("\x01", "\0\3", "\x0a") "Too large.");
    ANSWERS(&set, REPLY_NO_MEMORY_STORING,
            ERR("\x01", "\0\x82", "\x1d") "Out of memory allocating item");
    ANSWERS(&set, REPLY_BAD_FORMAT, ERR("\x01", "\0\4", "\x11") "Invalid arguments");
    struct req add = req_of(0x02, VERB_ADD, FAMILY_STORE);
    ANSWERS(&add, REPLY_NOT_STORED, ERR("\x02", "\0\2", "\x14") "Data exists for key.");
    struct req replace = req_of(0x03, VERB_REPLACE, FAMILY_STORE);
    ANSWERS(&replace, REPLY_NOT_STORED, ERR("\x03", "\0\1", "\x09") "Not found");
    struct req append = req_of(0x0e, VERB_APPEND, FAMILY_STORE);
    ANSWERS(&append, REPLY_NOT_STORED, ERR("\x0e", "\0\5", "\x0b") "Not stored.");
    struct req quiet = req_of(0x11, VERB_SET, FAMILY_STORE);
    quiet.is_quiet = true;
    ANSWERS(&quiet, REPLY_STORED, "");
    ANSWERS(&quiet, REPLY_NOT_FOUND, ERR("\x11", "\0\1", "\x09") "Not found");
}

TEST(test_number_replies)
{
    struct req incr = req_of(0x05, VERB_INCR, FAMILY_ARITH);
    ck_assert(binary_put_number(&chain, &env, &incr, 0x0102, 9));
    CHECK_OUTPUT(OUT("\x05", "\0\0", "\0", "\0\0", "\x08", "\x09") "\0\0\0\0\0\0\1\2");
    ANSWERS(&incr, REPLY_NOT_NUMERIC,
            ERR("\x05", "\0\6", "\x2e") "Non-numeric server-side value for incr or decr");
    ANSWERS(&incr, REPLY_NO_MEMORY,
            ERR("\x05", "\0\x82", "\x20") "Out of memory incrementing value");
    ANSWERS(&incr, REPLY_NO_MEMORY_STORING,
            ERR("\x05", "\0\x82", "\x21") "Out of memory allocating new item");
    incr.is_quiet = true;
    ck_assert(binary_put_number(&chain, &env, &incr, 1, 9));
    CHECK_OUTPUT("");
}

TEST(test_retrieval_replies)
{
    char head[BINARY_VALUE_HEAD_MAX];
    struct req get = req_of(0x00, VERB_GET, FAMILY_RETRIEVE);
    size_t n = binary_value_head(head, &get, "key", 3, 0xdeadbeef, 5, 9);
    ck_assert(chain_copy(&chain, &env, head, n));
    CHECK_OUTPUT(OUT("\x00", "\0\0", "\4", "\0\0", "\x09", "\x09") "\xde\xad\xbe\xef");
    ANSWERS(&get, REPLY_NOT_FOUND, ERR("\x00", "\0\1", "\x09") "Not found");
    get.wants_key = true;
    get.opcode = 0x0c;
    n = binary_value_head(head, &get, "key", 3, 1, 5, 9);
    ck_assert(chain_copy(&chain, &env, head, n));
    CHECK_OUTPUT(OUT("\x0c", "\0\3", "\4", "\0\0", "\x0c", "\x09") "\0\0\0\1key");
    ANSWERS(&get, REPLY_NOT_FOUND, OUT("\x0c", "\0\3", "\0", "\0\1", "\x03", "\0") "key");
    get.is_quiet = true;
    ANSWERS(&get, REPLY_NOT_FOUND, "");
    ANSWERS(&get, REPLY_BAD_FORMAT, ERR("\x0c", "\0\4", "\x11") "Invalid arguments");
}

TEST(test_other_replies)
{
    struct req stat = req_of(0x10, VERB_STATS, FAMILY_CONTROL);
    ck_assert(binary_put_stat(&chain, &env, &stat, (struct slice){"pid", 3},
                              (struct slice){"42", 2}, false));
    CHECK_OUTPUT(OUT("\x10", "\0\3", "\0", "\0\0", "\x05", "\0") "pid42");
    ck_assert(binary_put_stat(&chain, &env, &stat, (struct slice){"detailed", 8},
                              (struct slice){"PREFIX a\r\n", 10}, false));
    CHECK_OUTPUT(
        OUT("\x10", "\0\x08", "\0", "\0\0", "\x12", "\0") "detailedPREFIX a\r\n");
    ck_assert(binary_put_stat(&chain, &env, &stat, (struct slice){"detailed", 8},
                              (struct slice){"PREFIX a\r\n", 10}, true));
    CHECK_OUTPUT(
        OUT("\x10", "\0\x08", "\0", "\0\0", "\x17", "\0") "detailedPREFIX a\r\nEND\r\n");
    ck_assert(binary_put_reply(&chain, &env, &stat, REPLY_END, 0));
    CHECK_OUTPUT(ERR("\x10", "\0\0", "\0"));
    ANSWERS(&stat, REPLY_NOT_FOUND, ERR("\x10", "\0\1", "\x09") "Not found");
    struct req flush = req_of(0x18, VERB_FLUSH_ALL, FAMILY_ADMIN);
    flush.is_quiet = true;
    ANSWERS(&flush, REPLY_OK, "");
    ANSWERS(&flush, REPLY_FLUSH_REFUSED, ERR("\x18", "\0\x20", "\x0d") "Auth failure.");
    struct req unknown = req_of(0xff, VERB_NOOP, FAMILY_CONTROL);
    ANSWERS(&unknown, REPLY_ERROR, ERR("\xff", "\0\x81", "\x0f") "Unknown command");
    struct req auth = req_of(0x21, VERB_SASL_AUTH, FAMILY_SASL);
    ck_assert(binary_put_body(&chain, &env, &auth, BINARY_AUTH_CONTINUE, "\0x", 2));
    CHECK_OUTPUT(ERR("\x21", "\0\x21", "\2") "\0x");
}

/* Whatever the text protocol answers has a packet. */
TEST(test_all_replies)
{
    for (unsigned reply = REPLY_NONE + 1; reply < REPLY_COUNT; reply++) {
        struct req req = req_of(0x01, VERB_SET, FAMILY_STORE);
        put(&req, (enum reply)reply);
        ck_assert_uint_ge(chain.bytes, BINARY_HEADER_BYTES);
        chain_clear(&chain, &env);
    }
}
