/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * memcached's binary protocol.
 *
 *   | header, 24 bytes | extras | key | value |
 *
 * A get of several keys is a row of quiet gets that a noop ends; the server leaves misses
 * out and answers the noop. Every request carries the same opaque, which must come back.
 */

#include "base/be.h"
#include "loadgen/wire/codec.h"
#include "proto/binary.h"

#define OPAQUE UINT32_C(0x6d636c64)
#define GET_EXTRAS 4   /* flags */
#define STORE_EXTRAS 8 /* flags, time to live */
#define TOUCH_EXTRAS 4
#define INCR_EXTRAS 20 /* what to add, initial value, time to live */
#define NUMBER_BYTES 8

enum opcode {
    OPCODE_SET = 0x01,
    OPCODE_ADD = 0x02,
    OPCODE_REPLACE = 0x03,
    OPCODE_DELETE = 0x04,
    OPCODE_INCR = 0x05,
    OPCODE_DECR = 0x06,
    OPCODE_NOOP = 0x0a,
    OPCODE_GETK = 0x0c,
    OPCODE_GETKQ = 0x0d,
    OPCODE_APPEND = 0x0e,
    OPCODE_PREPEND = 0x0f,
    OPCODE_TOUCH = 0x1c,
    OPCODE_AUTH = 0x21,
};

enum status {
#define STATUS(id, code, body) STATUS_##id = (code),
#include "proto/status.def"
#undef STATUS
    /* What the server of this tree never says, but others do. */
    STATUS_INTERNAL = 0x0084,
    STATUS_TEMPORARY = 0x0086,
};

enum state {
    STATE_HEADER,
    STATE_HEAD, /* of a value: flags and key */
    STATE_VALUE,
    STATE_NUMBER,
    STATE_SKIP, /* to the end of the body, then it goes on */
    STATE_TELL, /* the same, then the reply is complete */
};

static const enum opcode opcodes[CODEC_VERBS] = {
    [CODEC_GET] = OPCODE_GETK,        [CODEC_GETS] = OPCODE_GETK,
    [CODEC_SET] = OPCODE_SET,         [CODEC_ADD] = OPCODE_ADD,
    [CODEC_REPLACE] = OPCODE_REPLACE, [CODEC_CAS] = OPCODE_SET,
    [CODEC_APPEND] = OPCODE_APPEND,   [CODEC_PREPEND] = OPCODE_PREPEND,
    [CODEC_DELETE] = OPCODE_DELETE,   [CODEC_TOUCH] = OPCODE_TOUCH,
    [CODEC_INCR] = OPCODE_INCR,       [CODEC_DECR] = OPCODE_DECR,
    [CODEC_AUTH] = OPCODE_AUTH,
};

/* ---- requests ---------------------------------------------------------------------- */

static size_t
put_header(char *dst, enum opcode opcode, size_t extras, size_t key, size_t value)
{
    memset(dst, 0, BINARY_HEADER_BYTES);
    dst[0] = (char)BINARY_REQUEST_MAGIC;
    dst[1] = (char)opcode;
    be_put(dst + 2, key, 2);
    dst[4] = (char)extras;
    be_put(dst + 8, extras + key + value, 4);
    be_put(dst + 12, OPAQUE, 4);
    return BINARY_HEADER_BYTES;
}

static size_t
put_key(char *dst, const struct codec_get *get, const char *key, size_t key_len)
{
    /* Every value comes with its cas. */
    size_t n = put_header(dst, get->keys > 1 ? OPCODE_GETKQ : OPCODE_GETK, 0, key_len, 0);
    return n + codec_put(dst + n, key, key_len);
}

static size_t
put_get_end(char *dst, const struct codec_get *get)
{
    return get->keys > 1 ? put_header(dst, OPCODE_NOOP, 0, 0, 0) : 0;
}

static size_t
put_store(char *dst, const struct codec_store *store)
{
    bool adds = store->verb == CODEC_APPEND || store->verb == CODEC_PREPEND;
    size_t extras = adds ? 0 : STORE_EXTRAS;
    size_t n =
        put_header(dst, opcodes[store->verb], extras, store->key_len, store->value_len);
    if (store->verb == CODEC_CAS) {
        be_put(dst + 16, store->cas, 8);
    }
    if (!adds) { /* what is there keeps its flags and time to live */
        be_put(dst + n, store->flags, 4);
        be_put(dst + n + 4, (uint32_t)store->exptime, 4);
    }
    n += extras;
    return n + codec_put(dst + n, store->key, store->key_len);
}

static size_t
put_order(char *dst, const struct codec_order *order)
{
    size_t extras = order->verb == CODEC_DELETE  ? 0
                    : order->verb == CODEC_TOUCH ? TOUCH_EXTRAS
                                                 : INCR_EXTRAS;
    size_t n = put_header(dst, opcodes[order->verb], extras, order->key_len, 0);
    if (extras == TOUCH_EXTRAS) {
        be_put(dst + n, order->number, TOUCH_EXTRAS);
    } else if (extras == INCR_EXTRAS) {
        be_put(dst + n, order->number, 8);
        be_put(dst + n + 8, 0, 8);
        be_put(dst + n + 16, BINARY_NO_CREATE, 4);
    }
    n += extras;
    return n + codec_put(dst + n, order->key, order->key_len);
}

/* SASL PLAIN: an empty authorization identity, the name and the password. */
static size_t
put_auth(char *dst, const char *user, const char *password)
{
    static const char mechanism[] = "PLAIN";
    size_t user_len = strlen(user), password_len = strlen(password);
    size_t n = put_header(dst, OPCODE_AUTH, 0, sizeof mechanism - 1,
                          user_len + password_len + 2);
    n += codec_put_text(dst + n, mechanism);
    dst[n++] = '\0';
    n += codec_put(dst + n, user, user_len);
    dst[n++] = '\0';
    return n + codec_put(dst + n, password, password_len);
}

/* ---- replies ----------------------------------------------------------------------- */

static enum client_kind
kind_of_status(unsigned status, enum codec_verb verb)
{
    switch (status) {
    case STATUS_NOT_FOUND:
        return codec_is_get(verb)      ? CLIENT_END
               : verb == CODEC_REPLACE ? CLIENT_NOT_STORED
                                       : CLIENT_NOT_FOUND;
    case STATUS_EXISTS:
        return verb == CODEC_ADD ? CLIENT_NOT_STORED : CLIENT_EXISTS;
    case STATUS_NOT_STORED:
        return CLIENT_NOT_STORED;
    case STATUS_UNKNOWN:
        return CLIENT_ERROR;
    case STATUS_TOO_LARGE:
    case STATUS_NO_MEMORY:
    case STATUS_BUSY:
    case STATUS_INTERNAL:
    case STATUS_TEMPORARY:
        return CLIENT_SERVER_ERROR;
    default:
        return CLIENT_CLIENT_ERROR;
    }
}

/* Drops the body, then tells the kind; of a row's gets, with the noop at its end. */
static enum client_kind
skip_and_tell(struct codec_parser *p, enum client_kind kind, bool is_part)
{
    p->held = kind;
    p->state = is_part ? STATE_SKIP : STATE_TELL;
    return CODEC_ON;
}

static enum client_kind
parse_header(struct codec_parser *p, const struct codec_expect *expect, const char *head)
{
    bool is_row = codec_is_get(expect->verb) && expect->keys > 1;
    enum opcode expected = is_row ? OPCODE_GETKQ : opcodes[expect->verb];
    uint64_t body = be_get(head + 8, 4);
    p->opcode = (uint8_t)head[1];
    p->key_len = (uint16_t)be_get(head + 2, 2);
    p->extras_len = (uint8_t)head[4];
    p->status = (uint16_t)be_get(head + 6, 2);
    p->cas = be_get(head + 16, 8);
    p->text.in.data_left = body;
    if ((unsigned char)head[0] != BINARY_REPLY_MAGIC || head[5] != 0 ||
        be_get(head + 12, 4) != OPAQUE || p->key_len > CLIENT_KEY_MAX ||
        (uint64_t)p->extras_len + p->key_len > body) {
        return CLIENT_DESYNC;
    }
    if (is_row && p->opcode == OPCODE_NOOP) {
        return skip_and_tell(p, p->held, false);
    }
    if (p->opcode != expected) {
        return skip_and_tell(p, CLIENT_OK, is_row); /* what no request is answered with */
    }
    if (p->status != STATUS_SUCCESS) {
        return skip_and_tell(p, kind_of_status(p->status, expect->verb), is_row);
    }
    if (codec_is_get(expect->verb)) {
        p->state = STATE_HEAD;
        return p->extras_len == GET_EXTRAS && p->key_len > 0 ? CODEC_ON : CLIENT_DESYNC;
    }
    if (expect->verb == CODEC_INCR || expect->verb == CODEC_DECR) {
        p->state = STATE_NUMBER;
        return body == NUMBER_BYTES && p->extras_len == 0 && p->key_len == 0
                   ? CODEC_ON
                   : CLIENT_DESYNC;
    }
    return skip_and_tell(p, codec_done_kind(expect->verb), false);
}

static enum client_kind
parse_block(struct codec_parser *p, const struct codec_expect *expect,
            struct client_text block, struct client_reply *reply)
{
    switch (p->state) {
    case STATE_HEADER:
        return parse_header(p, expect, block.p);
    case STATE_HEAD:
        reply->flags = (uint32_t)be_get(block.p, GET_EXTRAS);
        reply->key = block.p + p->extras_len;
        reply->key_len = p->key_len;
        reply->has_cas = true;
        reply->cas = p->cas;
        p->text.in.data_left -= block.len;
        reply->value_len = p->text.in.data_left;
        p->state = STATE_VALUE;
        return CLIENT_VALUE;
    default:
        reply->number = be_get(block.p, NUMBER_BYTES);
        p->text.in.data_left = 0;
        p->state = STATE_HEADER;
        return CLIENT_NUMBER;
    }
}

static enum client_kind
step(struct codec_parser *p, const struct codec_expect *expect, const char *buf,
     size_t len, size_t *taken, struct client_reply *reply)
{
    struct client_text block;
    enum client_kind kind;
    switch (p->state) {
    case STATE_VALUE:
        kind = codec_take_value(p, buf, len, taken, reply);
        if (kind == CODEC_ON) {
            p->state = STATE_HEADER;
            kind = expect->keys > 1 ? CODEC_ON : CLIENT_END;
        }
        return kind;
    case STATE_SKIP:
        kind = codec_skip_value(p, buf, len, taken);
        p->state = kind == CODEC_ON ? STATE_HEADER : p->state;
        return kind;
    case STATE_TELL:
        kind = codec_skip_value(p, buf, len, taken);
        return kind == CODEC_ON ? codec_tell(p) : kind;
    default:
        /* At once, not when a whole header has come: fewer bytes may never be more. */
        if (p->state == STATE_HEADER && p->text.in.line_len == 0 && *taken < len &&
            (unsigned char)buf[*taken] != BINARY_REPLY_MAGIC) {
            return CLIENT_DESYNC;
        }
        size_t fixed = p->state == STATE_HEADER ? BINARY_HEADER_BYTES
                       : p->state == STATE_HEAD ? (size_t)p->extras_len + p->key_len
                                                : NUMBER_BYTES;
        kind =
            codec_kind_of(client_take_block(&p->text.in, fixed, buf, len, taken, &block));
        return kind == CODEC_ON ? parse_block(p, expect, block, reply) : kind;
    }
}

const struct codec codec_binary = {
    .name = "binary",
    .verbs = CODEC_BIT(CODEC_VERBS) - 1,
    .has_multiget = true,
    .has_datagrams = true,
    .takes_any_byte = true,
    .has_stats = true,
    .put_key = put_key,
    .put_get_end = put_get_end,
    .put_store = put_store,
    .put_order = put_order,
    .put_auth = put_auth,
    .step = step,
};
