/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * RESP2, as Redis and its kin speak it. Values come without their keys, in order: a get of
 * several keys is an MGET, whose answer names each key's value or its absence. There is no
 * cas and there are no flags.
 */

#include "base/num.h"
#include "loadgen/wire/codec.h"

enum state {
    STATE_LINE,
    STATE_VALUE,
};

/* ---- requests ---------------------------------------------------------------------- */

static size_t
put_string(char *dst, const char *bytes, size_t len)
{
    size_t n = codec_put_line(dst, '$', len);
    n += codec_put(dst + n, bytes, len);
    return n + client_put_end(dst + n);
}

static size_t
put_word(char *dst, const char *word)
{
    return put_string(dst, word, strlen(word));
}

static size_t
put_number(char *dst, uint64_t number)
{
    char digits[NUM_U64_DIGITS];
    return put_string(dst, digits, num_put_u64(digits, number));
}

static size_t
put_get(char *dst, const struct codec_get *get)
{
    size_t n = codec_put_line(dst, '*', get->keys + 1);
    return n +
           codec_put_text(dst + n, get->keys > 1 ? "$4\r\nMGET\r\n" : "$3\r\nGET\r\n");
}

static size_t
put_key(char *dst, const struct codec_get *get, const char *key, size_t key_len)
{
    (void)get;
    return put_string(dst, key, key_len);
}

static size_t
put_store(char *dst, const struct codec_store *store)
{
    unsigned words = 3; /* SET key value [EX seconds] [NX|XX] */
    words += store->exptime > 0 ? 2 : 0;
    words += store->verb == CODEC_SET ? 0 : 1;
    size_t n = codec_put_line(dst, '*', words);
    n += codec_put_text(dst + n, "$3\r\nSET\r\n");
    n += put_string(dst + n, store->key, store->key_len);
    return n + codec_put_line(dst + n, '$', store->value_len);
}

static size_t
put_store_end(char *dst, const struct codec_store *store)
{
    size_t n = client_put_end(dst);
    if (store->exptime > 0) {
        n += put_word(dst + n, "EX");
        n += put_number(dst + n, (uint64_t)store->exptime);
    }
    if (store->verb != CODEC_SET) {
        n += put_word(dst + n, store->verb == CODEC_ADD ? "NX" : "XX");
    }
    return n;
}

static size_t
put_order(char *dst, const struct codec_order *order)
{
    bool has_number = order->verb != CODEC_DELETE;
    const char *word = order->verb == CODEC_INCR   ? "INCRBY"
                       : order->verb == CODEC_DECR ? "DECRBY"
                                                   : "DEL";
    if (order->verb == CODEC_TOUCH) {
        has_number = order->number > 0; /* EXPIRE 0 would delete */
        word = has_number ? "EXPIRE" : "TOUCH";
    }
    size_t n = codec_put_line(dst, '*', has_number ? 3 : 2);
    n += put_word(dst + n, word);
    n += put_string(dst + n, order->key, order->key_len);
    if (has_number) {
        n += put_number(dst + n, order->number);
    }
    return n;
}

/* AUTH [user] password: the name came with access lists and may be left out. */
static size_t
put_auth(char *dst, const char *user, const char *password)
{
    bool has_user = user[0] != '\0';
    size_t n = codec_put_line(dst, '*', has_user ? 3 : 2);
    n += put_word(dst + n, "AUTH");
    if (has_user) {
        n += put_word(dst + n, user);
    }
    return n + put_word(dst + n, password);
}

/* ---- replies ----------------------------------------------------------------------- */

/* One value, or its absence, of those asked for is complete. */
static enum client_kind
next_part(struct codec_parser *p)
{
    p->state = STATE_LINE;
    if (p->parts > 0) {
        p->index++;
        if (p->index < p->parts) {
            return CODEC_ON;
        }
    }
    return codec_tell(p);
}

static enum client_kind
parse_status(const struct codec_expect *expect, struct client_text text)
{
    bool stores = expect->verb == CODEC_SET || expect->verb == CODEC_ADD ||
                  expect->verb == CODEC_REPLACE || expect->verb == CODEC_AUTH;
    return stores && client_is_text(text, "OK") ? CLIENT_STORED : CLIENT_OK;
}

static enum client_kind
parse_number(const struct codec_expect *expect, struct client_text text,
             struct client_reply *reply)
{
    int64_t number;
    if (!num_i64(text.p, text.len, &number)) {
        return CLIENT_DESYNC;
    }
    reply->number = (uint64_t)number;
    switch (expect->verb) {
    case CODEC_DELETE:
        return number > 0 ? CLIENT_DELETED : CLIENT_NOT_FOUND;
    case CODEC_TOUCH:
        return number > 0 ? CLIENT_TOUCHED : CLIENT_NOT_FOUND;
    case CODEC_INCR:
    case CODEC_DECR:
        return CLIENT_NUMBER;
    default:
        return CLIENT_OK;
    }
}

static enum client_kind
parse_absence(struct codec_parser *p, const struct codec_expect *expect)
{
    switch (expect->verb) {
    case CODEC_GET:
        return next_part(p);
    case CODEC_SET:
    case CODEC_ADD:
    case CODEC_REPLACE:
        return CLIENT_NOT_STORED;
    default:
        return CLIENT_OK;
    }
}

static enum client_kind
parse_string(struct codec_parser *p, const struct codec_expect *expect,
             struct client_text text, struct client_reply *reply)
{
    if (expect->keys > 1 && p->parts == 0 && expect->verb == CODEC_GET) {
        return CLIENT_DESYNC; /* only an array answers an MGET */
    }
    if (client_is_text(text, "-1")) {
        return parse_absence(p, expect);
    }
    if (expect->verb != CODEC_GET || !num_u64(text.p, text.len, &reply->value_len)) {
        return CLIENT_DESYNC;
    }
    reply->index = p->index;
    p->state = STATE_VALUE;
    p->text.in.data_left = reply->value_len;
    p->text.in.terminator_len = 2; /* CR LF */
    return CLIENT_VALUE;
}

static enum client_kind
parse_array(struct codec_parser *p, const struct codec_expect *expect,
            struct client_text text)
{
    uint32_t parts;
    if (expect->verb != CODEC_GET || expect->keys == 1 || p->parts != 0 ||
        !num_u32(text.p, text.len, &parts) || parts != expect->keys) {
        return CLIENT_DESYNC;
    }
    p->parts = parts;
    return CODEC_ON;
}

/* -MOVED of a cluster is an error like others: redirections are not followed. */
static enum client_kind
parse_error(struct codec_parser *p, struct client_text text, struct client_reply *reply)
{
    if (p->parts > 0) {
        p->held = CLIENT_ERROR;
        return next_part(p);
    }
    reply->text = text.p;
    reply->text_len = text.len;
    return CLIENT_ERROR;
}

static enum client_kind
parse_line(struct codec_parser *p, const struct codec_expect *expect,
           struct client_text line, struct client_reply *reply)
{
    if (line.len == 0) {
        return CLIENT_DESYNC;
    }
    struct client_text text = {line.p + 1, line.len - 1};
    switch (line.p[0]) {
    case '+':
        return p->parts > 0 ? CLIENT_DESYNC : parse_status(expect, text);
    case '-':
        return parse_error(p, text, reply);
    case ':':
        return p->parts > 0 ? CLIENT_DESYNC : parse_number(expect, text, reply);
    case '$':
        return parse_string(p, expect, text, reply);
    case '*':
        return parse_array(p, expect, text);
    default:
        return CLIENT_DESYNC;
    }
}

static enum client_kind
step(struct codec_parser *p, const struct codec_expect *expect, const char *buf,
     size_t len, size_t *taken, struct client_reply *reply)
{
    struct client_text line;
    enum client_kind kind;
    if (p->state == STATE_VALUE) {
        kind = codec_take_value(p, buf, len, taken, reply);
        return kind == CODEC_ON ? next_part(p) : kind;
    }
    kind = codec_kind_of(client_take_line(&p->text.in, buf, len, taken, &line));
    return kind == CODEC_ON ? parse_line(p, expect, line, reply) : kind;
}

const struct codec codec_redis = {
    .name = "redis",
    .verbs = CODEC_BIT(CODEC_GET) | CODEC_BIT(CODEC_SET) | CODEC_BIT(CODEC_ADD) |
             CODEC_BIT(CODEC_REPLACE) | CODEC_BIT(CODEC_DELETE) | CODEC_BIT(CODEC_TOUCH) |
             CODEC_BIT(CODEC_INCR) | CODEC_BIT(CODEC_DECR) | CODEC_BIT(CODEC_AUTH),
    .has_multiget = true,
    .takes_any_byte = true,
    .has_lone_secret = true,
    .put_get = put_get,
    .put_key = put_key,
    .put_store = put_store,
    .put_store_end = put_store_end,
    .put_order = put_order,
    .put_auth = put_auth,
    .step = step,
};
