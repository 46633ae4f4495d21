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

#define INPUT_MAX 40000
#define RESULT_MAX 512
#define SHORT_KEY 20 /* longer ones are described by their length */

/* ---- lines as tests write them -------------------------------------------------------- */

/* "{250k}" stands for 250 times k, "{1@}" for a NUL byte. */
static inline size_t
expand(const char *pattern, char *dst)
{
    size_t n = 0;
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p != '{') {
            dst[n++] = *p;
            continue;
        }
        unsigned count = (unsigned)strtoul(p + 1, NULL, 10);
        p = strchr(p, '}');
        ck_assert_uint_le(n + count, INPUT_MAX);
        memset(dst + n, p[-1] == '@' ? '\0' : p[-1], count);
        n += count;
    }
    return n;
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
        say(dst, "[%zu*%c]", word.len, word.p[0]);
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

static inline void
say_request(char *dst, struct req *req)
{
    say(dst, "%s ", verb_names[req->verb]);
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
    case FAMILY_META: /* check_meta.c */
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
