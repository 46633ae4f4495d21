/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * watch [type ...]: the client becomes a watcher of the live log.
 */
#include "serve/exec.h"

#include "serve/watch.h"

/* The types asked for; 0 when one of them is unknown. */
static uint32_t
types_of(const struct req *req, bool is_long)
{
    uint32_t types = 0;
    struct slice rest = req->rest;
    struct slice word;
    must(req_next_word(&rest, &word)); /* the command */
    while (req_next_word(&rest, &word)) {
        uint32_t type = watch_type_of(word, is_long);
        if (type == 0) {
            return 0;
        }
        types |= type;
    }
    return types != 0 ? types : WATCH_FETCHERS;
}

enum session_ran
exec_watch(struct session *s, const struct env *env, struct chain *out)
{
    const struct rules *rules = env->conf->rules;
    if (s->is_datagram || env->watch == NULL) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (!env->conf->allows_watch) {
        return exec_reply(s, env, out, REPLY_WATCH_REFUSED);
    }
    if (rules->watch_must_be_alone && s->is_behind) {
        return exec_reply(s, env, out, REPLY_WATCH_PIPELINED);
    }
    uint32_t types = types_of(&s->req, rules->log_is_long);
    if (types == 0) {
        return exec_reply(s, env, out, REPLY_ERROR);
    }
    if (!watch_enter(env->watch)) {
        return exec_reply(s, env, out, REPLY_WATCH_TOO_MANY);
    }
    s->watches = types;
    return RAN_WATCH;
}
