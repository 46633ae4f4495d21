/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * memcached's meta commands. A get of several keys is a batch of quiet gets that an mn ends;
 * the server leaves misses out and answers MN.
 */
#include "base/num.h"
#include "loadgen/wire/codec.h"

enum state {
    STATE_LINE,
    STATE_VALUE,
    STATE_NUMBER,
};

static size_t
put_head(char *dst, const char *verb, const char *key, size_t key_len)
{
    size_t n = codec_put_text(dst, verb);
    return n + codec_put(dst + n, key, key_len);
}

static size_t
put_flag(char *dst, const char *flag, uint64_t number)
{
    size_t n = codec_put_text(dst, flag);
    return n + num_put_u64(dst + n, number);
}

/* What a get asks for; with a lease the cas, which the store needs. */
static size_t
put_key(char *dst, const struct codec_get *get, const char *key, size_t key_len)
{
    const struct codec_lease *lease = get->lease;
    bool with_cas = get->verb == CODEC_GETS || lease != NULL;
    size_t n = put_head(dst, "mg ", key, key_len);
    n += codec_put_text(dst + n, with_cas ? " k f v c" : " k f v");
    n += get->keys > 1 ? codec_put_text(dst + n, " q") : 0;
    if (lease != NULL) {
        n += put_flag(dst + n, " N", lease->seconds);
        n += lease->recache > 0 ? put_flag(dst + n, " R", lease->recache) : 0;
    }
    return n + client_put_end(dst + n);
}

static size_t
put_get_end(char *dst, const struct codec_get *get)
{
    return get->keys > 1 ? codec_put_text(dst, "mn\r\n") : 0;
}

/* Of an ms. */
static const char *const modes[CODEC_VERBS] = {
    [CODEC_SET] = "",       [CODEC_ADD] = " ME",     [CODEC_REPLACE] = " MR",
    [CODEC_APPEND] = " MA", [CODEC_PREPEND] = " MP",
};

static size_t
put_store(char *dst, const struct codec_store *store)
{
    size_t n = put_head(dst, "ms ", store->key, store->key_len);
    n += put_flag(dst + n, " ", store->value_len);
    if (store->flags != 0) {
        n += put_flag(dst + n, " F", store->flags);
    }
    if (store->exptime < 0) {
        n += put_flag(dst + n, " T-", (uint64_t)(-(int64_t)store->exptime));
    } else if (store->exptime > 0) {
        n += put_flag(dst + n, " T", (uint64_t)store->exptime);
    }
    if (store->verb == CODEC_CAS) {
        n += put_flag(dst + n, " C", store->cas);
    } else {
        n += codec_put_text(dst + n, modes[store->verb]);
    }
    return n + client_put_end(dst + n);
}

static size_t
put_order(char *dst, const struct codec_order *order)
{
    size_t n;
    if (order->verb == CODEC_DELETE) {
        n = put_head(dst, "md ", order->key, order->key_len);
    } else if (order->verb == CODEC_TOUCH) {
        n = put_head(dst, "mg ", order->key, order->key_len);
        n += put_flag(dst + n, " T", order->number);
    } else {
        n = put_head(dst, "ma ", order->key, order->key_len);
        n += put_flag(dst + n, order->verb == CODEC_DECR ? " v MD D" : " v D",
                      order->number);
    }
    return n + client_put_end(dst + n);
}

/* ---- replies ----------------------------------------------------------------------- */

/* One flag of a value: its letter and what stands behind it. */
static bool
parse_flag(struct client_text flag, struct client_reply *reply)
{
    if (flag.len == 0) {
        return false;
    }
    const char *text = flag.p + 1;
    size_t len = flag.len - 1;
    switch (flag.p[0]) {
    case 'k':
        reply->key = text;
        reply->key_len = len;
        return len > 0 && len <= CLIENT_KEY_MAX;
    case 'f':
        return num_u32(text, len, &reply->flags);
    case 'c':
        reply->has_cas = true;
        return num_u64(text, len, &reply->cas);
    case 'W':
        reply->marks |= CLIENT_MARK_WON;
        return true;
    case 'Z':
        reply->marks |= CLIENT_MARK_TAKEN;
        return true;
    case 'X':
        reply->marks |= CLIENT_MARK_STALE;
        return true;
    default:
        return true;
    }
}

/* "VA bytes flags" */
static enum client_kind
parse_value_line(struct codec_parser *p, const struct codec_expect *expect,
                 struct client_text rest, struct client_reply *reply)
{
    struct client_text bytes = client_take_word(&rest);
    if (!num_u64(bytes.p, bytes.len, &reply->value_len)) {
        return CLIENT_DESYNC;
    }
    if ((expect->verb == CODEC_INCR || expect->verb == CODEC_DECR) &&
        reply->value_len <= NUM_U64_DIGITS) {
        p->state = STATE_NUMBER;
        p->key_len = (uint16_t)reply->value_len;
        return CODEC_ON;
    }
    while (rest.len > 0) {
        if (!parse_flag(client_take_word(&rest), reply)) {
            return CLIENT_DESYNC;
        }
    }
    if (!codec_is_get(expect->verb) || reply->key == NULL) {
        return CLIENT_DESYNC;
    }
    p->state = STATE_VALUE;
    p->text.in.data_left = reply->value_len;
    p->text.in.terminator_len = 2; /* CR LF */
    return CLIENT_VALUE;
}

static enum client_kind
parse_number(struct codec_parser *p, struct client_text line, struct client_reply *reply)
{
    size_t digits = line.len;
    if (line.len != p->key_len) {
        return CLIENT_DESYNC;
    }
    while (digits > 0 && line.p[digits - 1] == ' ') {
        digits--; /* decr keeps the stored length */
    }
    p->state = STATE_LINE;
    return num_u64(line.p, digits, &reply->number) ? CLIENT_NUMBER : CLIENT_DESYNC;
}

/* An error in a batch is told at its end. A server without these commands answers each line
 * of the batch with an error, the mn too. */
static enum client_kind
parse_error(struct codec_parser *p, const struct codec_expect *expect,
            struct client_text line, struct client_reply *reply)
{
    enum client_kind kind = client_parse_text(line, reply);
    if (client_is_text(line, "ERROR")) {
        kind = CLIENT_ERROR;
    }
    if (kind != CLIENT_ERROR && kind != CLIENT_CLIENT_ERROR &&
        kind != CLIENT_SERVER_ERROR) {
        return CLIENT_DESYNC;
    }
    if (!codec_is_get(expect->verb) || expect->keys == 1) {
        return kind;
    }
    reply->text = NULL; /* gone when the batch ends */
    reply->text_len = 0;
    p->held = kind;
    p->parts++;
    return p->parts > expect->keys ? codec_tell(p) : CODEC_ON;
}

static enum client_kind
parse_line(struct codec_parser *p, const struct codec_expect *expect,
           struct client_text line, struct client_reply *reply)
{
    struct client_text rest = line;
    struct client_text word = client_take_word(&rest);
    bool is_batch = codec_is_get(expect->verb) && expect->keys > 1;
    if (client_is_text(word, "VA")) {
        return parse_value_line(p, expect, rest, reply);
    }
    if (client_is_text(word, "HD")) {
        return expect->verb != CODEC_AUTH ? codec_done_kind(expect->verb) : CLIENT_OK;
    }
    if (client_is_text(word, "EN")) {
        return codec_is_get(expect->verb) && !is_batch ? CLIENT_END : CLIENT_NOT_FOUND;
    }
    if (client_is_text(word, "MN")) {
        return is_batch ? codec_tell(p) : CLIENT_OK;
    }
    if (client_is_text(word, "NF")) {
        return CLIENT_NOT_FOUND;
    }
    if (client_is_text(word, "NS")) {
        return CLIENT_NOT_STORED;
    }
    if (client_is_text(word, "EX")) {
        return CLIENT_EXISTS;
    }
    if (expect->verb == CODEC_AUTH && client_is_text(line, "STORED")) {
        return CLIENT_STORED;
    }
    return parse_error(p, expect, line, reply);
}

static enum client_kind
step(struct codec_parser *p, const struct codec_expect *expect, const char *buf,
     size_t len, size_t *taken, struct client_reply *reply)
{
    struct client_text line;
    enum client_kind kind;
    if (p->state == STATE_VALUE) {
        kind = codec_take_value(p, buf, len, taken, reply);
        if (kind != CODEC_ON) {
            return kind;
        }
        p->state = STATE_LINE;
        return expect->keys > 1 ? CODEC_ON : CLIENT_END;
    }
    kind = codec_kind_of(client_take_line(&p->text.in, buf, len, taken, &line));
    if (kind != CODEC_ON) {
        return kind;
    }
    return p->state == STATE_NUMBER ? parse_number(p, line, reply)
                                    : parse_line(p, expect, line, reply);
}

const struct codec codec_meta = {
    .name = "meta",
    .verbs = CODEC_BIT(CODEC_VERBS) - 1,
    .has_multiget = true,
    .has_datagrams = true,
    .has_stats = true,
    .has_leases = true,
    .put_key = put_key,
    .put_get_end = put_get_end,
    .put_store = put_store,
    .put_store_end = codec_put_text_end,
    .put_order = put_order,
    .put_auth = codec_put_text_auth,
    .step = step,
};
