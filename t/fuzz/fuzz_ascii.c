/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The parser of requests. The first byte chooses profile and whether the buffer counts as
 * full; the rest is parsed line by line.
 */
#include "fuzz.h"

#include "proto/ascii.h"

#define FLAG_PROFILE 1
#define FLAG_FULL 2

static void
check_inside(struct slice s, const char *p, size_t n)
{
    must(s.len == 0 || (s.p >= p && s.p + s.len <= p + n));
}

static void
check_keys(const struct req *req)
{
    struct slice rest = req->rest, word;
    for (uint32_t i = 0; i < req->keys; i++) {
        must(req_next_word(&rest, &word));
        must(word.len >= 1 && word.len <= REQ_KEY_MAX);
    }
    must(!req_next_word(&rest, &word));
}

/* What a request promises. */
static void
check_request(const struct req *req, const char *p, size_t n)
{
    must((unsigned)req->verb < VERB_COUNT);
    switch (req->family) {
    case FAMILY_RETRIEVE:
        check_inside(req->rest, p, n);
        check_keys(req);
        break;
    case FAMILY_STORE:
        must(req->value_len <= REQ_VALUE_MAX);
        /* fall through */
    case FAMILY_ARITH:
    case FAMILY_TOUCH:
    case FAMILY_DELETE:
    case FAMILY_META:
        check_inside(req->key, p, n);
        must(req->key.len >= 1 && req->key.len <= REQ_KEY_MAX);
        break;
    case FAMILY_SASL: /* binary only */
        must(false);
        break;
    case FAMILY_ADMIN:
    case FAMILY_CONTROL:
        for (unsigned i = 0; i < req->words && i < REQ_WORDS_MAX; i++) {
            check_inside(req->word[i], p, n);
            must(req->word[i].len > 0);
        }
        break;
    }
}

/* Parses what is left of the input, in a block that ends where it ends. */
static struct parse
parse_rest(const uint8_t *data, size_t size, bool is_full, const struct rules *rules,
           struct req *req)
{
    char *p = exact_copy(data, size);
    bool is_open = req->is_open;
    struct parse parsed = is_open ? ascii_parse_keys(p, size, is_full, rules, req)
                                  : ascii_parse(p, size, 0, is_full, rules, req);
    must(parsed.consumed <= size);
    if (parsed.status == PARSE_DONE) {
        check_request(req, p, size);
        must(is_full || !req->is_open);
    } else if (parsed.status == PARSE_BAD) {
        must((unsigned)parsed.reply < REPLY_COUNT && parsed.reply != REPLY_NONE);
    }
    /* A line is the same line whatever has been looked at before. */
    const char *line_feed = size > 0 ? memchr(p, '\n', size) : NULL;
    if (!is_open && line_feed != NULL) {
        struct req again = {0};
        struct parse same =
            ascii_parse(p, size, (size_t)(line_feed - p), is_full, rules, &again);
        must(same.status == parsed.status && same.consumed == parsed.consumed &&
             same.reply == parsed.reply && same.swallow == parsed.swallow);
    }
    free(p);
    return parsed;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    bool is_full = (data[0] & FLAG_FULL) != 0;
    const struct rules *rules =
        rules_of(data[0] & FLAG_PROFILE ? PROFILE_16 : PROFILE_14);
    struct req req = {0};
    for (size_t at = 1; at < size;) {
        struct parse parsed = parse_rest(data + at, size - at, is_full, rules, &req);
        if (parsed.status == PARSE_MORE || parsed.status == PARSE_CLOSE) {
            break;
        }
        if (parsed.status == PARSE_BAD) {
            req.is_open = false;
        }
        must(parsed.consumed > 0 || req.is_open);
        if (parsed.consumed == 0) {
            break; /* one key fills what there is */
        }
        at += parsed.consumed;
    }
    return 0;
}
