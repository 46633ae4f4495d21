/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The parser of binary requests and the replies to them. The first byte chooses the profile;
 * the rest is parsed request by request, each in a block that ends where the input ends.
 */
#include "fuzz.h"

#include "proto/binary.h"

#define FLAG_PROFILE 1

static void
release(void *ctx, void *owner)
{
    (void)ctx, (void)owner;
    must(false); /* replies borrow nothing */
}

static void
check_inside(struct slice s, const char *p, size_t n)
{
    must(s.len == 0 || (s.p >= p && s.len <= n && s.p + s.len <= p + n));
}

/* What a request promises. */
static void
check_request(const struct req *req, const char *p, size_t n)
{
    must((unsigned)req->verb < VERB_COUNT && req->key.len <= REQ_KEY_MAX);
    must(!req->is_noreply && !req->is_open && req->keys == 1);
    check_inside(req->key, p, n);
    check_inside(req->value, p, n);
    if (req->family == FAMILY_STORE) {
        must(req->key.len > 0 && req->value_len <= INT32_MAX && req->value.len == 0);
    }
    for (unsigned i = 0; req->verb == VERB_STATS && i < req->words && i < REQ_WORDS_MAX;
         i++) {
        check_inside(req->word[i], p, n);
    }
}

/* Everything that the request could be answered with. */
static void
check_replies(const struct req *req)
{
    struct pool pool;
    struct chain out = {.first = NULL};
    pool_init(&pool);
    struct chain_env env = {.pool = &pool, .release = release};
    for (unsigned reply = REPLY_NONE + 1; reply < REPLY_COUNT; reply++) {
        size_t before = out.bytes;
        must(binary_put_reply(&out, &env, req, (enum reply)reply, 1));
        must(out.bytes == before || out.bytes - before >= BINARY_HEADER_BYTES);
    }
    must(binary_put_number(&out, &env, req, UINT64_MAX, 1));
    char *head = malloc(BINARY_VALUE_HEAD_MAX);
    must(head != NULL);
    must(binary_value_head(head, req, req->key.p, req->key.len, 1, 2, 3) <=
         BINARY_VALUE_HEAD_MAX);
    free(head);
    chain_clear(&out, &env);
    pool_fini(&pool);
}

static struct parse
parse_rest(const uint8_t *data, size_t size, const struct rules *rules)
{
    struct req req;
    memset(&req, 0xa5, sizeof req); /* nothing of an earlier request shows */
    char *p = exact_copy(data, size);
    struct parse parsed = binary_parse(p, size, rules, &req);
    must(parsed.consumed <= size);
    if (parsed.status == PARSE_DONE) {
        check_request(&req, p, size);
        check_replies(&req);
    } else if (parsed.status == PARSE_BAD) {
        must((unsigned)parsed.reply < REPLY_COUNT && parsed.reply != REPLY_NONE);
        must(parsed.consumed == BINARY_HEADER_BYTES && parsed.swallow <= UINT32_MAX);
    } else {
        must(parsed.consumed == 0);
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
    const struct rules *rules =
        rules_of(data[0] & FLAG_PROFILE ? PROFILE_16 : PROFILE_14);
    for (size_t at = 1; at < size;) {
        struct parse parsed = parse_rest(data + at, size - at, rules);
        if (parsed.consumed == 0) {
            break;
        }
        at += parsed.consumed;
    }
    return 0;
}
