/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/meta.h"

#include <assert.h>

#include "base/base64.h"
#include "base/num.h"

static_assert(BASE64_DECODED_MAX(REQ_KEY_MAX) <= REQ_KEY_MAX, "a decoded key fits");

static const char known_flags[] = "bkOqsvctflhuECNRTFIxMJDPL";

/* ---- numbers -------------------------------------------------------------------------- */

/* What stands behind the letter of a flag. */
static struct slice
argument(struct slice word)
{
    return (struct slice){word.p + 1, word.len - 1};
}

static enum reply
take_u64(struct slice word, uint64_t *out, enum reply error)
{
    return req_digits_u64(argument(word), out) ? REPLY_NONE : error;
}

static enum reply
take_i32(struct slice word, int32_t *out)
{
    struct slice digits = argument(word);
    return num_i32(digits.p, digits.len, out) ? REPLY_NONE : REPLY_META_BAD_TOKEN;
}

static enum reply
take_exptime(struct slice word, struct req *req)
{
    int32_t exptime;
    enum reply error = take_i32(word, &exptime);
    if (error == REPLY_NONE) {
        req->exptime = exptime;
    }
    return error;
}

/* ---- flags ---------------------------------------------------------------------------- */

static enum reply
take_client_flags(struct slice word, struct req *req)
{
    uint64_t flags = 0;
    enum reply error = take_u64(word, &flags, REPLY_BAD_FORMAT);
    if (flags > UINT32_MAX) { /* of set they are cut */
        error = REPLY_BAD_FORMAT;
    }
    req->flags = (uint32_t)flags;
    return error;
}

static enum reply
take_opaque(struct slice word, struct req_meta *meta)
{
    if (word.len > META_OPAQUE_MAX) {
        return REPLY_META_BAD_OPAQUE;
    }
    memcpy(meta->opaque, word.p, word.len);
    meta->opaque_len = (uint8_t)word.len;
    return REPLY_NONE;
}

static enum reply
take_mode(struct slice word, struct req *req)
{
    char mode = word.len > 1 ? word.p[1] : '\0';
    req->meta.mode = mode;
    if (req->verb == VERB_MS && (mode == '\0' || strchr("EAPRS", mode) == NULL)) {
        return REPLY_META_BAD_MS_MODE;
    }
    if (req->verb == VERB_MA && (mode == '\0' || strchr("I+D-", mode) == NULL)) {
        return REPLY_META_BAD_MA_MODE;
    }
    return REPLY_NONE;
}

static enum reply
check_encoded_key(struct slice key)
{
    char scratch[REQ_KEY_MAX];
    size_t len;
    return base64_decode(scratch, key.p, key.len, &len) ? REPLY_NONE : REPLY_META_BAD_KEY;
}

static enum reply
take_argument(struct slice word, struct req *req)
{
    switch (word.p[0]) {
    case 'b':
        return check_encoded_key(req->key);
    case 'O':
        return take_opaque(word, &req->meta);
    case 'E':
        return take_u64(word, &req->meta.new_cas, REPLY_META_BAD_TOKEN);
    case 'C':
        return take_u64(word, &req->meta.compare, REPLY_META_BAD_TOKEN);
    case 'N':
        return take_i32(word, &req->meta.create_exptime);
    case 'R':
        return take_i32(word, &req->meta.recache_below);
    case 'T':
        return take_exptime(word, req);
    case 'F':
        return take_client_flags(word, req);
    case 'J':
        return take_u64(word, &req->meta.initial, REPLY_META_BAD_INITIAL);
    case 'D':
        return take_u64(word, &req->meta.delta, REPLY_META_BAD_DELTA);
    case 'M':
        return take_mode(word, req);
    default:
        return REPLY_NONE;
    }
}

static enum reply
take_flag(struct slice word, struct req *req)
{
    char flag = word.p[0];
    if ((uint8_t)flag >= 127) { /* beyond the letters; the field's name for it */
        return REPLY_META_DUPLICATE;
    }
    if (flag == '\0' || strchr(known_flags, flag) == NULL) {
        return REPLY_META_BAD_FLAG;
    }
    if (meta_has(req, flag)) {
        return REPLY_META_DUPLICATE;
    }
    req->meta.has |= meta_bit(flag);
    req->meta.order[req->meta.count++] = flag;
    return take_argument(word, req);
}

static enum reply
take_flags(struct slice rest, unsigned words, struct req *req)
{
    struct slice word;
    while (req_next_word(&rest, &word)) {
        enum reply error =
            ++words > META_WORDS_MAX ? REPLY_META_TOO_MANY : take_flag(word, req);
        if (error != REPLY_NONE) {
            return error;
        }
    }
    return REPLY_NONE;
}

/* ---- commands ------------------------------------------------------------------------- */

static struct parse
result_of(size_t consumed, enum reply error)
{
    return (struct parse){.status = error == REPLY_NONE ? PARSE_DONE : PARSE_BAD,
                          .consumed = consumed,
                          .reply = error};
}

static void
reset(struct req *req)
{
    req->key = (struct slice){NULL, 0};
    req->flags = 0;
    req->exptime = 0;
    req->value_len = 0;
    req->words = 0;
    req->meta = (struct req_meta){.delta = 1};
}

/* The data block of an ms goes whenever its length is known, whatever else is wrong. */
static struct parse
parse_store(struct slice rest, size_t consumed, struct req *req)
{
    struct slice word;
    if (!req_next_word(&rest, &word) || !num_u32(word.p, word.len, &req->value_len) ||
        req->value_len > REQ_VALUE_MAX) {
        return result_of(consumed, REPLY_BAD_FORMAT);
    }
    enum reply error =
        req->key.len > REQ_KEY_MAX ? REPLY_BAD_FORMAT : take_flags(rest, 3, req);
    bool joins = req->meta.mode == 'A' || req->meta.mode == 'P';
    if (joins &&
        meta_has(req, 'N')) { /* only an item that it creates has a time to live of it */
        req->exptime = req->meta.create_exptime;
    }
    struct parse result = result_of(consumed, error);
    if (error != REPLY_NONE) {
        result.swallow = (uint64_t)req->value_len + 2;
    }
    return result;
}

/* Looks at the word behind the key only. */
static enum reply
parse_show(struct slice rest, struct req *req)
{
    struct slice word;
    if (!req_next_word(&rest, &word) || word.p[0] != 'b') {
        return REPLY_NONE;
    }
    req->meta.has = meta_bit('b');
    return check_encoded_key(req->key) == REPLY_NONE ? REPLY_NONE : REPLY_BAD_FORMAT;
}

/* One text for nearly all that can be wrong with the flags of ma. */
static enum reply
error_of_arith(enum reply error)
{
    switch (error) {
    case REPLY_NONE:
    case REPLY_BAD_FORMAT: /* of F */
    case REPLY_META_TOO_MANY:
    case REPLY_META_BAD_OPAQUE:
    case REPLY_META_BAD_MA_MODE:
        return error;
    default:
        return REPLY_META_BAD_MA_FLAG;
    }
}

struct parse
meta_parse(struct slice rest, size_t consumed, struct req *req)
{
    reset(req);
    bool has_key = req_next_word(&rest, &req->key);
    if (has_key && req->verb == VERB_MS) {
        return parse_store(rest, consumed, req);
    }
    if (!has_key || req->key.len > REQ_KEY_MAX) {
        return result_of(consumed, REPLY_BAD_FORMAT);
    }
    switch (req->verb) {
    case VERB_ME:
        return result_of(consumed, parse_show(rest, req));
    case VERB_MA:
        return result_of(consumed, error_of_arith(take_flags(rest, 2, req)));
    default:
        return result_of(consumed, take_flags(rest, 2, req));
    }
}

struct slice
meta_key(const struct req *req, char buf[REQ_KEY_MAX])
{
    if (!meta_has(req, 'b')) {
        return req->key;
    }
    size_t len;
    bool is_encoded = base64_decode(buf, req->key.p, req->key.len, &len);
    must(is_encoded); /* the parser has seen it */
    return (struct slice){buf, len};
}
