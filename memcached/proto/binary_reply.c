/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/binary.h"

#include "base/be.h"

#define FLAGS_BYTES 4
#define NUMBER_BYTES 8
#define LINES_END "END\r\n"

struct status_row {
    uint16_t code;
    uint16_t len;
    const char *body;
};

static const struct status_row statuses[BINARY_STATUS_COUNT] = {
#define STATUS(id, code, body) [BINARY_##id] = {code, sizeof(body) - 1, body},
#include "proto/status.def"
#undef STATUS
};

/* Replies that mean the same whatever the verb. */
static const enum binary_status of_reply[REPLY_COUNT] = {
    [REPLY_OK] = BINARY_SUCCESS,
    [REPLY_END] = BINARY_SUCCESS,
    [REPLY_STORED] = BINARY_SUCCESS,
    [REPLY_DELETED] = BINARY_SUCCESS,
    [REPLY_TOUCHED] = BINARY_SUCCESS,
    [REPLY_RESET] = BINARY_SUCCESS,
    [REPLY_NOT_STORED] = BINARY_NOT_STORED,
    [REPLY_EXISTS] = BINARY_EXISTS,
    [REPLY_NOT_FOUND] = BINARY_NOT_FOUND,
    [REPLY_ERROR] = BINARY_UNKNOWN,
    [REPLY_NOT_NUMERIC] = BINARY_NOT_NUMERIC,
    [REPLY_FLUSH_REFUSED] = BINARY_AUTH_FAILED,
    [REPLY_UDP_REFUSED] = BINARY_NOT_OVER_UDP,
    [REPLY_DETAIL_REFUSED] = BINARY_AUTH_FAILED,
    [REPLY_BAD_DETAIL] = BINARY_NOT_FOUND,
    [REPLY_AUTH_FAILURE] = BINARY_AUTH_FAILED,
    [REPLY_BUSY] = BINARY_BUSY,
    [REPLY_TOO_LARGE] = BINARY_TOO_LARGE,
    [REPLY_NO_MEMORY] = BINARY_NO_MEMORY,
    [REPLY_NO_MEMORY_STORING] = BINARY_NO_MEMORY_ITEM,
};

static enum binary_status
status_of(const struct req *req, enum reply reply)
{
    if (reply == REPLY_NOT_STORED && req->verb == VERB_ADD) {
        return BINARY_EXISTS;
    }
    if (reply == REPLY_NOT_STORED && req->verb == VERB_REPLACE) {
        return BINARY_NOT_FOUND;
    }
    if (reply == REPLY_NO_MEMORY && req->family == FAMILY_ARITH) {
        return BINARY_NO_MEMORY_SUM;
    }
    if (reply == REPLY_NO_MEMORY_STORING && req->family == FAMILY_ARITH) {
        return BINARY_NO_MEMORY_NEW;
    }
    return of_reply[reply];
}

static bool
is_silent(const struct req *req, enum binary_status status)
{
    return req->is_quiet &&
           status == (req->family == FAMILY_RETRIEVE ? BINARY_NOT_FOUND : BINARY_SUCCESS);
}

/* ---- packets -------------------------------------------------------------------------- */

static char *
put_be(char *to, uint64_t value, unsigned bytes)
{
    be_put(to, value, bytes);
    return to + bytes;
}

/* What a reply consists of. */
struct packet {
    enum binary_status status;
    size_t extras, key, value;
    uint64_t cas;
};

static char *
put_header(char *to, const struct req *req, const struct packet *packet)
{
    to = put_be(to, BINARY_REPLY_MAGIC, 1);
    to = put_be(to, req->opcode, 1);
    to = put_be(to, packet->key, 2);
    to = put_be(to, packet->extras, 1);
    to = put_be(to, 0, 1);
    to = put_be(to, statuses[packet->status].code, 2);
    to = put_be(to, packet->extras + packet->key + packet->value, 4);
    to = put_be(to, req->opaque, 4);
    return put_be(to, packet->cas, 8);
}

static bool
put_packet(struct chain *out, const struct chain_env *env, const struct req *req,
           const struct packet *packet, const char *body)
{
    char header[BINARY_HEADER_BYTES];
    size_t len = packet->extras + packet->key + packet->value;
    put_header(header, req, packet);
    return chain_copy(out, env, header, sizeof header) && chain_copy(out, env, body, len);
}

bool
binary_put_body(struct chain *out, const struct chain_env *env, const struct req *req,
                enum binary_status status, const char *body, size_t len)
{
    must((unsigned)status < BINARY_STATUS_COUNT && len <= UINT32_MAX);
    struct packet packet = {.status = status, .value = len};
    return is_silent(req, status) || put_packet(out, env, req, &packet, body);
}

bool
binary_put_reply(struct chain *out, const struct chain_env *env, const struct req *req,
                 enum reply reply, uint64_t cas)
{
    must((unsigned)reply < REPLY_COUNT && reply != REPLY_NONE);
    enum binary_status status = status_of(req, reply);
    if (is_silent(req, status)) {
        return true;
    }
    if (status == BINARY_NOT_FOUND && req->wants_key) {
        struct packet miss = {.status = status, .key = req->key.len};
        return put_packet(out, env, req, &miss, req->key.p);
    }
    struct packet packet = {.status = status,
                            .value = statuses[status].len,
                            .cas = status == BINARY_SUCCESS ? cas : 0};
    return put_packet(out, env, req, &packet, statuses[status].body);
}

size_t
binary_value_head(char *dst, const struct req *req, const char *key, size_t key_len,
                  uint32_t flags, uint32_t value_len, uint64_t cas)
{
    struct packet packet = {.status = BINARY_SUCCESS,
                            .extras = FLAGS_BYTES,
                            .key = req->wants_key ? key_len : 0,
                            .value = value_len,
                            .cas = cas};
    char *to = put_header(dst, req, &packet);
    to = put_be(to, flags, FLAGS_BYTES);
    memcpy(to, key, packet.key);
    return BINARY_HEADER_BYTES + FLAGS_BYTES + packet.key;
}

bool
binary_put_number(struct chain *out, const struct chain_env *env, const struct req *req,
                  uint64_t number, uint64_t cas)
{
    char body[NUMBER_BYTES];
    struct packet packet = {.status = BINARY_SUCCESS, .value = NUMBER_BYTES, .cas = cas};
    put_be(body, number, NUMBER_BYTES);
    return is_silent(req, BINARY_SUCCESS) || put_packet(out, env, req, &packet, body);
}

bool
binary_put_stat(struct chain *out, const struct chain_env *env, const struct req *req,
                struct slice name, struct slice value, bool ends_lines)
{
    must(name.len <= UINT16_MAX && value.len <= INT32_MAX);
    char header[BINARY_HEADER_BYTES];
    size_t tail = ends_lines ? sizeof LINES_END - 1 : 0;
    struct packet packet = {
        .status = BINARY_SUCCESS, .key = name.len, .value = value.len + tail};
    put_header(header, req, &packet);
    return chain_copy(out, env, header, sizeof header) &&
           chain_copy(out, env, name.p, name.len) &&
           chain_copy(out, env, value.p, value.len) &&
           chain_copy(out, env, LINES_END, tail);
}
