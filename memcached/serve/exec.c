/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/exec.h"

#define ASCII_DELETE 0x7f

bool
exec_has_binary_key(const struct req *req)
{
    if (req->protocol != PROTOCOL_BINARY) {
        return false;
    }
    for (size_t i = 0; i < req->key.len; i++) {
        if ((uint8_t)req->key.p[i] <= ' ' || req->key.p[i] == ASCII_DELETE) {
            return true;
        }
    }
    return false;
}

enum session_ran
exec_reply_cas(const struct session *s, const struct env *env, struct chain *out,
               enum reply reply, uint64_t cas)
{
    if (s->req->protocol == PROTOCOL_BINARY) {
        return exec_ran(binary_put_reply(out, &env->chain, s->req, reply, cas));
    }
    return exec_ran(s->req->is_noreply || ascii_put_reply(out, &env->chain, reply));
}

enum session_ran
exec_reply(const struct session *s, const struct env *env, struct chain *out,
           enum reply reply)
{
    return exec_reply_cas(s, env, out, reply, 0);
}

enum session_ran
exec_reply_body(const struct session *s, const struct env *env, struct chain *out,
                enum binary_status status, const char *body, size_t len)
{
    must(s->req->protocol == PROTOCOL_BINARY);
    return exec_ran(binary_put_body(out, &env->chain, s->req, status, body, len));
}
