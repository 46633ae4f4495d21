/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the tests of the text parser share: lines in a short notation and results as text.
 */
#pragma once

#include "proto/ascii.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/rng.h"
#include "check_unit.h"
#include "proto/meta.h"

#define INPUT_MAX 40000
#define RESULT_MAX 512
#define SHORT_KEY 20 /* longer ones are described by their length */

/* ---- lines as tests write them -------------------------------------------------------- */

static inline size_t
expand(const char *pattern, char *dst)
{
    SCOPED(text_free) struct text t = {.p = NULL};
    text_expand(&t, pattern);
    ck_assert_uint_le(t.len, INPUT_MAX);
    if (t.len > 0) {
        memcpy(dst, t.p, t.len);
    }
    return t.len;
}

/* ---- results as text ------------------------------------------------------------------ */

static const char *const verb_names[VERB_COUNT] = {
#define VERB(id, wire, family, min, max, noreply) [VERB_##id] = wire,
#include "proto/verb.def"
#undef VERB
};

static const char *const reply_names[REPLY_COUNT] = {
#define REPLY(id, text) [REPLY_##id] = #id,
#include "proto/reply.def"
#undef REPLY
};

__attribute__((format(printf, 2, 3))) static inline void
say(char *dst, const char *fmt, ...)
{
    size_t len = strlen(dst);
    va_list args;
    va_start(args, fmt);
    vsnprintf(dst + len, RESULT_MAX - len, fmt, args);
    va_end(args);
}

static inline void
say_word(char *dst, struct slice word)
{
    if (word.len > SHORT_KEY) {
        say(dst, "[%zu*%c]", word.len, word.p[0] == '\0' ? '@' : word.p[0]);
        return;
    }
    say(dst, "[");
    for (size_t i = 0; i < word.len; i++) {
        say(dst, "%c", word.p[i] == '\0' ? '@' : word.p[i]);
    }
    say(dst, "]");
}

static inline void
say_keys(char *dst, struct req *req)
{
    uint32_t keys = req->keys;
    for (uint32_t i = 0; i < keys && i < 4; i++) {
        say_word(dst, req_next_key(req));
    }
    if (keys > 4) {
        say(dst, "+%" PRIu32, keys - 4);
    }
}

/* The number behind a flag of a meta command, as it was understood. */
static inline void
say_meta_number(char *dst, const struct req *req, char flag)
{
    const struct req_meta *meta = &req->meta;
    if (strchr("TNR", flag) != NULL) {
        say(dst, "%" PRId64,
            flag == 'T'   ? req->exptime
            : flag == 'N' ? meta->create_exptime
                          : meta->recache_below);
    } else if (strchr("CEJDF", flag) != NULL) {
        say(dst, "%" PRIu64,
            flag == 'C'   ? meta->compare
            : flag == 'E' ? meta->new_cas
            : flag == 'J' ? meta->initial
            : flag == 'D' ? meta->delta
                          : req->flags);
    }
}

/* Key, and the flags in the order of the line. */
static inline void
say_meta(char *dst, const struct req *req)
{
    char decoded[REQ_KEY_MAX];
    uint64_t has = 0;
    say_word(dst, meta_key(req, decoded));
    if (req->verb == VERB_MS) {
        say(dst, " len=%" PRIu32 " exp=%" PRId64, req->value_len, req->exptime);
    }
    for (unsigned i = 0; i < req->meta.count; i++) {
        char flag = req->meta.order[i];
        say(dst, " %c", flag);
        say_meta_number(dst, req, flag);
        if (flag == 'O') {
            say(dst, "=%.*s", req->meta.opaque_len, req->meta.opaque);
        } else if (flag == 'M') {
            say(dst, "=%c", req->meta.mode != '\0' ? req->meta.mode : '@');
        }
        has |= meta_bit(flag);
    }
    ck_assert(req->verb == VERB_ME || has == req->meta.has);
}

static inline void
say_request(char *dst, struct req *req)
{
    say(dst, "%s ", verb_names[req->verb]);
    if (req->family == FAMILY_META || req->verb == VERB_MS) {
        say_meta(dst, req);
        return;
    }
    switch (req->family) {
    case FAMILY_RETRIEVE:
        if (req->verb == VERB_GAT || req->verb == VERB_GATS) {
            say(dst, "%" PRId64 " ", req->exptime);
        }
        say_keys(dst, req);
        break;
    case FAMILY_STORE:
        say_word(dst, req->key);
        say(dst, " flags=%" PRIu32 " exp=%" PRId64 " len=%" PRIu32, req->flags,
            req->exptime, req->value_len);
        if (req->verb == VERB_CAS) {
            say(dst, " cas=%" PRIu64, req->number);
        }
        break;
    case FAMILY_ARITH:
        say_word(dst, req->key);
        say(dst, " %" PRIu64, req->number);
        break;
    case FAMILY_TOUCH:
        say_word(dst, req->key);
        say(dst, " %" PRId64, req->exptime);
        break;
    case FAMILY_DELETE:
        say_word(dst, req->key);
        break;
    case FAMILY_SASL: /* not in text */
    case FAMILY_META: /* above */
        break;
    case FAMILY_ADMIN:
    case FAMILY_CONTROL:
        say(dst, "%u", req->words);
        for (unsigned i = 1; i < req->words && i < REQ_WORDS_MAX; i++) {
            say(dst, " ");
            say_word(dst, req->word[i]);
        }
        break;
    }
    say(dst, "%s%s", req->is_noreply ? " noreply" : "", req->is_open ? " open" : "");
}

static inline const char *
describe(struct parse parsed, struct req *req, char *dst)
{
    dst[0] = '\0';
    switch (parsed.status) {
    case PARSE_DONE:
        say_request(dst, req);
        break;
    case PARSE_MORE:
        say(dst, "MORE");
        break;
    case PARSE_CLOSE:
        say(dst, "CLOSE");
        break;
    case PARSE_BAD:
        say(dst, "BAD %s%s%s", reply_names[parsed.reply], parsed.is_quiet ? " quiet" : "",
            parsed.skips_line ? " skip" : "");
        if (parsed.swallow > 0) {
            say(dst, " swallow=%" PRIu64, parsed.swallow);
        }
        break;
    }
    return dst;
}

/* Parses an exact copy; the result as text, and how much of the input went. */
static inline size_t
parse(const char *p, size_t n, size_t scanned, bool is_full, enum profile profile,
      char *result)
{
    struct req req;
    memset(&req, 0xa5, sizeof req); /* nothing of an earlier request shows */
    char *copy = exact_copy(p, n);
    struct parse parsed = ascii_parse(copy, n, scanned, is_full, rules_of(profile), &req);
    describe(parsed, &req, result);
    free(copy);
    return parsed.consumed;
}

/* ---- tables of lines ------------------------------------------------------------------- */

struct line_row {
    const char *line; /* line end included */
    const char *old;  /* 1.4 */
    const char *now;  /* 1.6; NULL: the same */
};

/* The line alone, with more behind it, and with any part known to hold no LF. */
static inline void
check_line(const char *p, size_t n, enum profile profile, const char *expected)
{
    char result[RESULT_MAX];
    char *longer = malloc(n + 7);
    bool closes = strcmp(expected, "CLOSE") == 0;
    ck_assert_ptr_nonnull(longer);
    memcpy(longer, p, n);
    memcpy(longer + n, "get z\r\n", 7);
    size_t consumed = parse(p, n, 0, false, profile, result);
    ck_assert_str_eq(result, expected);
    ck_assert_uint_eq(consumed, closes ? 0 : n);
    for (size_t scanned = 0; scanned<n; scanned += n> 1000 ? 97 : 1) {
        consumed = parse(longer, n + 7, scanned, scanned % 2 == 1, profile, result);
        expect(strcmp(result, expected) == 0);
        expect(closes || consumed == n);
    }
    free(longer);
}

/* Everything short of the LF: more is needed, or it is too long to wait for. */
static inline void
check_prefixes(const char *p, size_t n, enum profile profile)
{
    char result[RESULT_MAX];
    for (size_t len = 0; len<n; len += len> 3000 ? 97 : 1) {
        size_t consumed = parse(p, len, len / 2, false, profile, result);
        expect(consumed == 0);
        bool may_close = len > rules_of(profile)->line_max;
        expect(strcmp(result, "MORE") == 0 ||
               (may_close && strcmp(result, "CLOSE") == 0));
    }
}

static inline void
check_row(const struct line_row *row)
{
    char *input = malloc(INPUT_MAX);
    ck_assert_ptr_nonnull(input);
    size_t n = expand(row->line, input);
    check_line(input, n, PROFILE_14, row->old);
    check_line(input, n, PROFILE_16, row->now != NULL ? row->now : row->old);
    check_prefixes(input, n, PROFILE_14);
    check_prefixes(input, n, PROFILE_16);
    free(input);
}
