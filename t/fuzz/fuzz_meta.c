/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The parser of meta commands. The first byte chooses the command; each line of the rest is
 * what stands behind it. What the parser lets through can be echoed in a line of the
 * promised length.
 */
#include "fuzz.h"

#include "base/base64.h"
#include "proto/meta.h"

static const enum verb verbs[] = {VERB_MG, VERB_MS, VERB_MD, VERB_MA, VERB_ME};

#define VERBS (sizeof verbs / sizeof verbs[0])

/* What goes to a client as a key comes back as the same key. */
static void
check_key(const struct req *req)
{
    char decoded[REQ_KEY_MAX], encoded[BASE64_ENCODED(REQ_KEY_MAX)], again[REQ_KEY_MAX];
    size_t len;
    struct slice key = meta_key(req, decoded);
    must(key.len >= 1 && key.len <= REQ_KEY_MAX);
    if (meta_has(req, 'b')) {
        size_t n = base64_encode(encoded, key.p, key.len);
        must(n == req->key.len);
        must(base64_decode(again, encoded, n, &len));
        must(len == key.len && memcmp(again, key.p, len) == 0);
    }
    char *p = malloc(META_LINE_MAX);
    must(p != NULL);
    struct meta_line line = meta_line_begin(p, "EN");
    meta_line_echo(&line, req, key);
    meta_line_end(&line);
    free(p);
}

static void
check_request(const struct req *req, const char *p, size_t n)
{
    const struct req_meta *meta = &req->meta;
    uint64_t has = 0;
    must(req->key.len >= 1 && req->key.p >= p && req->key.p + req->key.len <= p + n);
    must(req->value_len <= REQ_VALUE_MAX);
    must(meta->count <= META_WORDS_MAX && meta->opaque_len <= META_OPAQUE_MAX);
    for (unsigned i = 0; i < meta->count; i++) {
        must((has & meta_bit(meta->order[i])) == 0);
        has |= meta_bit(meta->order[i]);
    }
    must(req->verb == VERB_ME || has == meta->has);
    must(meta_has(req, 'O') == (meta->opaque_len > 0));
    check_key(req);
}

static void
parse_line(const uint8_t *line, size_t n, enum verb verb)
{
    struct req req;
    memset(&req, 0xa5, sizeof req); /* nothing of an earlier request shows */
    req.verb = verb;
    char *p = exact_copy(line, n);
    /* Behind a command there is at least the line feed, so the server passes no NULL. */
    struct slice rest = {p != NULL ? p : "", n};
    struct parse parsed = meta_parse(rest, n + 1, &req);
    must(parsed.consumed == n + 1 && !parsed.is_quiet && !parsed.skips_line);
    if (parsed.status == PARSE_DONE) {
        must(parsed.swallow == 0);
        check_request(&req, p, n);
    } else {
        must(parsed.status == PARSE_BAD && parsed.reply != REPLY_NONE);
        must(verb == VERB_MS || parsed.swallow == 0);
        must(parsed.swallow <= (uint64_t)REQ_VALUE_MAX + 2);
    }
    free(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    for (size_t at = 1; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end != NULL ? (size_t)(end - data) - at : size - at;
        parse_line(data + at, n, verbs[data[0] % VERBS]);
        at += n + 1;
    }
    return 0;
}
