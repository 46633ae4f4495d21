/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Codec of the binary protocol. Pure: (pointer, length) in, struct req or reply bytes out; no
 * memory, no clock, no I/O.
 *
 *   | header, 24 bytes | extras | key | value |
 *
 * The requests are in opcode.def, the replies' status codes in status.def. What serve/ asks
 * for is an enum reply as in the text protocol; the status that it becomes may depend on the
 * verb.
 */
#pragma once

#include "base/chain.h"
#include "proto/req.h"
#include "proto/rules.h"

#define BINARY_REQUEST_MAGIC 0x80
#define BINARY_REPLY_MAGIC 0x81
#define BINARY_HEADER_BYTES 24
#define BINARY_EXTRAS_MAX 20
#define BINARY_MECHANISM_MAX 32     /* name of a SASL mechanism */
#define BINARY_SASL_DATA_MAX 8192   /* of one request */
#define BINARY_NO_CREATE UINT32_MAX /* expiry of INCREMENT: do not create */

enum binary_status {
#define STATUS(id, code, body) BINARY_##id,
#include "proto/status.def"
#undef STATUS
    BINARY_STATUS_COUNT
};

/* Parses the request at the front of p[0..n). Of a STORE `consumed` ends before the value, of
 * which req->value_len bytes follow; all other requests are consumed whole. *req's slices
 * point into p. */
struct parse binary_parse(const char *p, size_t n, const struct rules *rules,
                          struct req *req);
/* The request whose header begins at p, as if the protocol did not know its opcode. */
struct parse binary_parse_unknown(const char *p, const struct rules *rules);

/* ---- replies; false: no memory -------------------------------------------------------- */

/* The reply in place of the text, nothing where the request is quiet about it. cas is sent
 * with success only. */
must_check bool binary_put_reply(struct chain *out, const struct chain_env *env,
                                 const struct req *req, enum reply reply, uint64_t cas);

/* A reply whose body is not the status's own text. */
must_check bool binary_put_body(struct chain *out, const struct chain_env *env,
                                const struct req *req, enum binary_status status,
                                const char *body, size_t len);

#define BINARY_VALUE_HEAD_MAX (BINARY_HEADER_BYTES + 4 + REQ_KEY_MAX)

/* What stands before the value of a hit, into dst of BINARY_VALUE_HEAD_MAX bytes; returns the
 * length. The key is sent when the request wants it. */
size_t binary_value_head(char *dst, const struct req *req, const char *key,
                         size_t key_len, uint32_t flags, uint32_t value_len,
                         uint64_t cas);

/* The answer to INCREMENT and DECREMENT. */
must_check bool binary_put_number(struct chain *out, const struct chain_env *env,
                                  const struct req *req, uint64_t number, uint64_t cas);

/* One statistic; both empty: the end of them. Lines of text as one may be closed like in the text
 * protocol. */
must_check bool binary_put_stat(struct chain *out, const struct chain_env *env,
                                const struct req *req, struct slice name,
                                struct slice value, bool ends_lines);
