/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Codec of the text protocol. Pure: (pointer, length) in, struct req or reply bytes out; no
 * memory, no clock, no I/O.
 */
#pragma once

#include "base/chain.h"
#include "proto/req.h"
#include "proto/rules.h"

/* Parses the next line of p[0..n). `scanned` bytes at the front are known to hold no LF.
 * is_full: the buffer cannot take more, so a long retrieval must be answered in parts: the
 * request then is_open and `consumed` ends behind its last whole key. */
struct parse ascii_parse(const char *p, size_t n, size_t scanned, bool is_full,
                         const struct rules *rules, struct req *req);

/* The length, with its end, of the line at the front of p[0..n), when it is a good "get" of at
 * most `keys` keys; 0: it is not, or only ascii_parse can decide. For requests whose keys
 * do not matter. */
size_t ascii_skim_get(const char *p, size_t n, uint32_t keys);

/* Counts the words of text that begins with one; true: none is longer than a key may be. */
must_check bool ascii_count_keys(struct slice text, uint32_t *keys);

/* A "set" as most clients write it: one blank between words, numbers of digits. */
struct ascii_set {
    struct slice key;
    uint32_t flags, value_len;
    int32_t exptime; /* as the client wrote it */
    bool is_noreply;
};

/* Cuts the line at the front of p[0..end). Returns its length, with its end; 0: it is not whole, or
 * only ascii_parse can decide. There is a line feed in front of `end` or there, and
 * ASCII_CUT_SLACK - 1 bytes behind it may be read. */
#define ASCII_CUT_SLACK 16
size_t ascii_cut_set(const char *p, const char *end, struct ascii_set *set);

/* Goes on with the keys of an open retrieval in *req. */
struct parse ascii_parse_keys(const char *p, size_t n, bool is_full,
                              const struct rules *rules, struct req *req);

/* A word as a number, by the rules loose (num_u64_loose) or req_digits_u64, and with a sign. */
must_check bool req_word_u64(struct slice word, const struct rules *rules, uint64_t *out);
must_check bool req_word_i64(struct slice word, const struct rules *rules, int64_t *out);
/* That of an admin command, which the rules may confine to 32 bits. */
must_check bool req_admin_u64(struct slice word, const struct rules *rules,
                              uint64_t *out);
must_check bool req_admin_i64(struct slice word, const struct rules *rules, int64_t *out);
/* A garbled one is 0 where the rules are not strict, one out of range never. */
must_check bool req_admin_i64_or_0(struct slice word, const struct rules *rules,
                                   int64_t *out);
/* Has no sign where they are strict, and is as the one above where they are not. */
must_check bool req_admin_level(struct slice word, const struct rules *rules,
                                int64_t *out);

/* ---- replies; false: no memory -------------------------------------------------------- */

#define ASCII_REPLY_MAX 96

/* Its bytes, with the line end: ASCII_REPLY_MAX at most, constant. */
struct slice ascii_reply(enum reply reply);
must_check bool ascii_put_reply(struct chain *out, const struct chain_env *env,
                                enum reply reply);
must_check bool ascii_put_number(struct chain *out, const struct chain_env *env,
                                 const char *digits, size_t n);

#define ASCII_VALUE_HEAD_MAX (6 + REQ_KEY_MAX + 3 * 21 + 2)

/* "VALUE <key> <flags> <bytes>[ <cas>]\r\n" into dst of ASCII_VALUE_HEAD_MAX bytes; returns
 * the length. cas is left out when has_cas is false. */
size_t ascii_value_head(char *dst, const char *key, size_t key_len, uint32_t flags,
                        uint32_t value_len, bool has_cas, uint64_t cas);

/* "STAT <name> <value>\r\n" */
must_check bool ascii_put_stat(struct chain *out, const struct chain_env *env,
                               const char *name, const char *value);
