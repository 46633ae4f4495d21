/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/ascii.h"

#include "base/bytes.h"
#include "base/num.h"

static const struct slice lines[REPLY_COUNT] = {
#define REPLY(id, text) [REPLY_##id] = {text "\r\n", sizeof(text "\r\n") - 1},
#include "proto/reply.def"
#undef REPLY
};

#define REPLY(id, text)                                                                  \
    _Static_assert(sizeof(text "\r\n") <= ASCII_REPLY_MAX, "a fixed reply is short");
#include "proto/reply.def"
#undef REPLY

struct slice
ascii_reply(enum reply reply)
{
    must(reply < REPLY_COUNT && reply != REPLY_NONE);
    return lines[reply];
}

bool
ascii_put_reply(struct chain *out, const struct chain_env *env, enum reply reply)
{
    struct slice line = ascii_reply(reply);
    char *to = chain_reserve(out, env, line.len);
    if (to == NULL) {
        return false;
    }
    memcpy(to, line.p, line.len);
    chain_commit(out, line.len);
    return true;
}

bool
ascii_put_number(struct chain *out, const struct chain_env *env, const char *digits,
                 size_t n)
{
    return chain_copy(out, env, digits, n) && chain_copy(out, env, "\r\n", 2);
}

size_t
ascii_value_head(char *dst, const char *key, size_t key_len, uint32_t flags,
                 uint32_t value_len, bool has_cas, uint64_t cas)
{
    char *to = dst;
    memcpy(to, "VALUE ", 6);
    bytes_copy(to + 6, key, key_len);
    to += 6 + key_len;
    if (likely(flags == 0)) {
        memcpy(to, " 0 ", 3);
        to += 3;
    } else {
        *to++ = ' ';
        to += num_put_freely(to, flags);
        *to++ = ' ';
    }
    to += num_put_freely(to, value_len);
    if (has_cas) {
        *to++ = ' ';
        to += num_put_u64(to, cas);
    }
    *to++ = '\r';
    *to++ = '\n';
    return (size_t)(to - dst);
}

bool
ascii_put_stat(struct chain *out, const struct chain_env *env, const char *name,
               const char *value)
{
    return chain_copy(out, env, "STAT ", 5) && chain_copy(out, env, name, strlen(name)) &&
           chain_copy(out, env, " ", 1) && chain_copy(out, env, value, strlen(value)) &&
           chain_copy(out, env, "\r\n", 2);
}
