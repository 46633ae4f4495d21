/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/binary.h"

#include "base/be.h"

#define OPCODES 256

enum presence { NO, MUST, MAY };

struct opcode_row {
    bool is_known;
    bool is_quiet;
    bool wants_key;
    enum verb verb;
    uint8_t extras, or_extras;
    enum presence key, value;
};

static const struct opcode_row opcodes[OPCODES] = {
#define OPCODE(code, verb_, is_quiet_, extras_, or_extras_, key_, value_, wants_key_)    \
    [code] = {.is_known = true,                                                          \
              .is_quiet = is_quiet_,                                                     \
              .wants_key = wants_key_,                                                   \
              .verb = VERB_##verb_,                                                      \
              .extras = extras_,                                                         \
              .or_extras = or_extras_,                                                   \
              .key = key_,                                                               \
              .value = value_},
#include "proto/opcode.def"
#undef OPCODE
};

static const enum verb_family families[VERB_COUNT] = {
#define VERB(id, wire, family, min, max, noreply) [VERB_##id] = FAMILY_##family,
#include "proto/verb.def"
#undef VERB
};

/* The lengths of a request. They are the client's word: nothing is read or skipped by them
 * before bad_opcode and fits have compared them. */
struct lengths {
    size_t extras, key, body;
};

static size_t
value_bytes(const struct lengths *len)
{
    return len->body - len->key - len->extras;
}

static bool
allows(enum presence presence, size_t len)
{
    return presence == MAY || (presence == MUST) == (len > 0);
}

/* True when the row allows a request of these lengths. */
static bool
fits(const struct opcode_row *row, const struct lengths *len)
{
    return (len->extras == row->extras || len->extras == row->or_extras) &&
           allows(row->key, len->key) && allows(row->value, value_bytes(len));
}

/* ---- results -------------------------------------------------------------------------- */

static struct parse
bad(enum reply reply, bool closes, size_t swallow)
{
    return (struct parse){.status = PARSE_BAD,
                          .consumed = BINARY_HEADER_BYTES,
                          .reply = reply,
                          .closes = closes,
                          .swallow = swallow};
}

static struct lengths
lengths_of(const char *p)
{
    return (struct lengths){
        .key = be_get(p + 2, 2), .extras = be_get(p + 4, 1), .body = be_get(p + 8, 4)};
}

/* An unknown opcode; the lengths come first. */
static struct parse
bad_opcode(const struct lengths *len, const struct rules *rules)
{
    if (len->extras + len->key > len->body) {
        return bad(REPLY_ERROR, true, 0);
    }
    if (len->key > REQ_KEY_MAX || len->body > rules->binary_body_max) {
        return bad(REPLY_BAD_FORMAT, true, 0);
    }
    return bad(REPLY_ERROR, false, len->body);
}

struct parse
binary_parse_unknown(const char *p, const struct rules *rules)
{
    struct lengths len = lengths_of(p);
    return bad_opcode(&len, rules);
}

/* ---- requests ------------------------------------------------------------------------- */

static void
read_extras(const char *extras, size_t len, struct req *req)
{
    switch (req->family) {
    case FAMILY_STORE:
        req->flags = len > 0 ? (uint32_t)be_get(extras, 4) : 0;
        req->exptime = len > 0 ? (uint32_t)be_get(extras + 4, 4) : 0;
        break;
    case FAMILY_ARITH:
        req->number = be_get(extras, 8);
        req->initial = be_get(extras + 8, 8);
        req->exptime = (uint32_t)be_get(extras + 16, 4);
        req->creates = req->exptime != BINARY_NO_CREATE;
        break;
    default:
        req->exptime = len > 0 ? (uint32_t)be_get(extras, 4) : 0;
        break;
    }
}

/* A request whose lengths are right. */
static struct parse
parse_request(const char *p, size_t n, const struct lengths *len, struct req *req)
{
    size_t whole = BINARY_HEADER_BYTES + len->extras + len->key;
    if (req->family == FAMILY_STORE) {
        req->value_len = (uint32_t)value_bytes(len);
    } else {
        whole += value_bytes(len);
    }
    if (req->family == FAMILY_SASL &&
        (len->key > BINARY_MECHANISM_MAX || value_bytes(len) > BINARY_SASL_DATA_MAX)) {
        return bad(REPLY_BAD_FORMAT, false, len->body);
    }
    if (n < whole) {
        return (struct parse){.status = PARSE_MORE};
    }
    const char *extras = p + BINARY_HEADER_BYTES;
    read_extras(extras, len->extras, req);
    req->key = (struct slice){extras + len->extras, len->key};
    req->rest = req->key;
    req->value = (struct slice){extras + len->extras + len->key,
                                req->family == FAMILY_STORE ? 0 : value_bytes(len)};
    if (req->verb == VERB_STATS) {
        req->word[0] = req->key; /* the command, as in a text line */
        req->words = 1;
        (void)req_cut_words(req->key, req);
    }
    return (struct parse){.status = PARSE_DONE, .consumed = whole};
}

struct parse
binary_parse(const char *p, size_t n, const struct rules *rules, struct req *req)
{
    if (n < BINARY_HEADER_BYTES) {
        return (struct parse){.status = PARSE_MORE};
    }
    if ((uint8_t)p[0] != BINARY_REQUEST_MAGIC) {
        return (struct parse){.status = PARSE_CLOSE};
    }
    req->opcode = (uint8_t)p[1];
    const struct opcode_row *row = &opcodes[req->opcode];
    struct lengths len = lengths_of(p);
    req->opaque = (uint32_t)be_get(p + 12, 4);
    req->compare = be_get(p + 16, 8);
    req->verb = row->is_known ? row->verb : VERB_NOOP;
    req->family = families[req->verb];
    req->is_quiet = row->is_quiet;
    req->wants_key = row->wants_key;
    req->is_noreply = false;
    req->is_open = false;
    req->has_keys = false;
    req->keys = 1;
    req->key = req->rest = req->value = (struct slice){NULL, 0}; /* not the last one's */
    struct parse unknown = bad_opcode(&len, rules);
    if (!row->is_known || unknown.closes) {
        return unknown;
    }
    if (!fits(row, &len)) {
        return bad(REPLY_BAD_FORMAT, true, 0);
    }
    return parse_request(p, n, &len, req);
}
