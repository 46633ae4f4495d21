/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Codec of the meta commands of the text protocol. Pure: slices in, struct req out; values
 * in, reply bytes out.
 */
#pragma once

#include "proto/req.h"

/* ---- requests ------------------------------------------------------------------------- */

/* Parses the words behind the command mg, ms, md, ma or me, which req->verb names; consumed:
 * bytes of the line, line end included. */
struct parse meta_parse(struct slice rest, size_t consumed, struct req *req);

/* flag: a letter. */
static inline uint64_t
meta_bit(char flag)
{
    return UINT64_C(1) << (flag - 'A');
}

static inline bool
meta_has(const struct req *req, char flag)
{
    return (req->meta.has & meta_bit(flag)) != 0;
}

/* The key that the client means, decoded into buf when it came as base64. */
struct slice meta_key(const struct req *req, char buf[REQ_KEY_MAX]);

/* ---- replies -------------------------------------------------------------------------- */

/* The longest first line, line end included: "VA <len>", every return flag, " X W". */
#define META_LINE_MAX 640

/* A first line that grows in its owner's bytes. */
struct meta_line {
    char *p;
    size_t len;
};

/* Begins a line in p[0..META_LINE_MAX) with a status such as "HD", */
struct meta_line meta_line_begin(char *p, const char *status);
/* or with "VA <value_len>", */
struct meta_line meta_line_begin_value(char *p, uint32_t value_len);
/* goes on with " <flag><number>", " <flag>", */
void meta_line_number(struct meta_line *line, char flag, uint64_t number);
void meta_line_mark(struct meta_line *line, char flag);
/* " t<seconds>" or " t-1", */
void meta_line_ttl(struct meta_line *line, int64_t seconds);
/* " k<key>" or " k<base64> b", */
void meta_line_key(struct meta_line *line, struct slice key, bool is_binary);
/* " <the opaque word>", */
void meta_line_opaque(struct meta_line *line, const struct req *req);
/* and ends with CR LF. */
void meta_line_end(struct meta_line *line);

/* The return flags that need no item, k and O, in the order of the request. */
void meta_line_echo(struct meta_line *line, const struct req *req, struct slice key);

/* What me shows of an item. */
struct meta_facts {
    struct slice key;
    bool is_binary_key;
    bool was_fetched;
    uint8_t class_id;
    int64_t ttl; /* seconds, -1 never */
    uint32_t idle;
    uint32_t total;
    uint64_t cas;
};

/* Writes the reply of me to p[0..META_LINE_MAX); returns its length. */
size_t meta_describe(char *p, const struct meta_facts *facts);
