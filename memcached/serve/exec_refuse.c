/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What clients hear of requests that are not executed because there are too many.
 */
#include "proto/meta.h"
#include "serve/exec.h"

/* Writes of which the client did not want to hear. A read that stays silent would be a miss,
 * so it gets one. */
static bool
is_quiet_write(const struct req *req)
{
    switch (req->family) {
    case FAMILY_RETRIEVE:
        return false;
    case FAMILY_META:
        return (req->verb == VERB_MD || req->verb == VERB_MA) && meta_has(req, 'q');
    default:
        return req->is_noreply || (req->verb == VERB_MS && meta_has(req, 'q')) ||
               (req->protocol == PROTOCOL_BINARY && req->is_quiet);
    }
}

static enum session_ran
miss_meta(const struct req *req, const struct env *env, struct chain *out)
{
    char decoded[REQ_KEY_MAX];
    switch (req->verb) {
    case VERB_ME:
        return exec_ran(ascii_put_reply(out, &env->chain, REPLY_META_MISS));
    case VERB_MG:
        return meta_has(req, 'q')
                   ? RAN_DONE
                   : exec_meta_echo(req, env, out, "EN", meta_key(req, decoded));
    default:
        return exec_meta_echo(req, env, out, req->verb == VERB_MS ? "NS" : "NF",
                              meta_key(req, decoded));
    }
}

static enum reply
miss(const struct req *req)
{
    bool is_binary = req->protocol == PROTOCOL_BINARY;
    switch (req->family) {
    case FAMILY_RETRIEVE:
        return is_binary ? REPLY_NOT_FOUND : REPLY_END;
    case FAMILY_STORE:
        /* cas: as if there were nothing to compare with */
        return req->verb == VERB_CAS || (is_binary && req->compare != 0)
                   ? REPLY_NOT_FOUND
                   : REPLY_NOT_STORED;
    case FAMILY_ARITH:
    case FAMILY_TOUCH:
    case FAMILY_DELETE:
        return REPLY_NOT_FOUND;
    default:
        return REPLY_BUSY;
    }
}

enum session_ran
exec_refuse(const struct session *s, const struct env *env, struct chain *out,
            bool as_miss)
{
    const struct req *req = s->req;
    if (is_quiet_write(req)) {
        return RAN_DONE;
    }
    if (!as_miss) {
        return exec_reply(s, env, out, REPLY_BUSY);
    }
    bool is_meta = req->family == FAMILY_META || req->verb == VERB_MS;
    return is_meta ? miss_meta(req, env, out) : exec_reply(s, env, out, miss(req));
}
