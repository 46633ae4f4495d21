/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Authentication in the binary protocol.
 */
#include "serve/exec.h"

#include "serve/auth.h"

#define TEXT_AUTHENTICATED "Authenticated"

static enum session_ran
answer(struct session *s, const struct env *env, struct chain *out,
       enum auth_status status, struct slice challenge)
{
    switch (status) {
    case AUTH_DONE:
        ctr_add(&env->ctr->auth_cmds, 1);
        s->is_authenticated = true;
        return exec_reply_body(s, env, out, BINARY_SUCCESS, TEXT_AUTHENTICATED,
                               sizeof TEXT_AUTHENTICATED - 1);
    case AUTH_CONTINUE:
        return exec_reply_body(s, env, out, BINARY_AUTH_CONTINUE, challenge.p,
                               challenge.len);
    case AUTH_FAILED:
        ctr_add(&env->ctr->auth_cmds, 1);
        ctr_add(&env->ctr->auth_errors, 1);
        return exec_reply(s, env, out, REPLY_AUTH_FAILURE);
    case AUTH_NO_MEMORY:
        return exec_reply(s, env, out, REPLY_NO_MEMORY);
    case AUTH_ASKED:
        return RAN_PARKED;
    }
    unreachable();
}

static enum auth_status
ask(struct session *s, const struct env *env, struct slice *challenge)
{
    const struct req *req = s->req;
    if (auth_is_asked(s->auth)) {
        return auth_answer(s->auth, challenge);
    }
    return req->verb == VERB_SASL_AUTH
               ? auth_start(env->conf->auth, &s->auth, req->key, req->value, &env->back,
                            challenge)
               : auth_step(env->conf->auth, &s->auth, req->value, &env->back, challenge);
}

enum session_ran
exec_sasl(struct session *s, const struct env *env, struct chain *out)
{
    struct auth *auth = env->conf->auth;
    const struct req *req = s->req;
    struct slice challenge = {NULL, 0};
    if (auth == NULL) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (req->verb == VERB_SASL_LIST) {
        const char *names = auth_mechanisms(auth);
        return exec_reply_body(s, env, out, BINARY_SUCCESS, names, strlen(names));
    }
    /* Whatever the result: a client that begins anew is not authenticated until it has
     * succeeded. */
    s->is_authenticated = false;
    enum auth_status status = ask(s, env, &challenge);
    return answer(s, env, out, status, challenge);
}
