/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * incr, decr, touch and delete: one key, a short answer.
 */
#include "serve/exec.h"

#include "base/num.h"
#include "base/probe.h"
#include "serve/key_event.h"

static enum session_ran
reply_number(const struct session *s, const struct env *env, struct chain *out,
             struct slice digits, uint64_t cas)
{
    bool has_room = true;
    if (s->req->protocol == PROTOCOL_BINARY) {
        uint64_t number;
        must(num_u64(digits.p, digits.len, &number));
        has_room = binary_put_number(out, &env->chain, s->req, number, cas);
    } else if (!s->req->is_noreply) {
        has_room = ascii_put_number(out, &env->chain, digits.p, digits.len);
    }
    return exec_ran(has_room);
}

static struct store_sum
sum_of(const struct req *req, const struct env *env)
{
    struct store_sum sum = {
        .increments = req->verb == VERB_INCR, .owner = env->owner, .delta = req->number};
    if (req->protocol == PROTOCOL_BINARY) {
        sum.has_compare = req->compare != 0;
        sum.compare = req->compare;
        sum.creates = req->creates;
        sum.is_binary_key = exec_has_binary_key(req);
        sum.initial = req->initial;
        sum.create_exptime = exec_exptime(env, req->exptime);
    }
    return sum;
}

void
exec_count_sum(const struct env *env, bool increments, enum store_status status,
               const struct store_result *result)
{
    struct serve_ctr *ctr = env->ctr;
    if (status == STORE_OK && !result->is_created) {
        struct serve_slab_ctr *slab = &ctr->slab[result->class_id];
        ctr_add(increments ? &slab->incr_hits : &slab->decr_hits, 1);
    } else if (status == STORE_MISS) {
        ctr_add(increments ? &ctr->incr_misses : &ctr->decr_misses, 1);
    }
}

enum session_ran
exec_arith(struct session *s, const struct env *env, struct chain *out)
{
    struct store_sum sum = sum_of(s->req, env);
    char number[STORE_NUMBER_DIGITS];
    size_t digits = 0;
    struct store_result result;
    key_event_lookup(env, exec_key(s->req->key));
    if (s->req->verb == VERB_INCR) {
        PROBE(command__incr, env->client_fd, s->req->key.p, s->req->key.len,
              s->req->number);
    } else {
        PROBE(command__decr, env->client_fd, s->req->key.p, s->req->key.len,
              s->req->number);
    }
    enum store_status status = store_arith(env->store, exec_key(s->req->key), &sum,
                                           env->now, number, &digits, &result);
    exec_count_sum(env, sum.increments, status, &result);
    exec_count_gone(env, result.found);
    switch (status) {
    case STORE_OK:
        if (result.is_created) {
            key_event_created(env, exec_key(s->req->key), &result);
        }
        return reply_number(s, env, out, (struct slice){number, digits}, result.cas);
    case STORE_EXISTS:
        return exec_reply(s, env, out, REPLY_EXISTS);
    case STORE_NOT_NUMERIC:
        return exec_reply(s, env, out, REPLY_NOT_NUMERIC);
    case STORE_NO_MEMORY:
        /* without a class there was none that could not grow: a new one was wanted */
        return exec_reply(s, env, out,
                          result.class_id == 0 ? REPLY_NO_MEMORY_STORING
                                               : REPLY_NO_MEMORY);
    default:
        return exec_reply(s, env, out, REPLY_NOT_FOUND);
    }
}

enum session_ran
exec_touch(struct session *s, const struct env *env, struct chain *out)
{
    if (s->req->protocol == PROTOCOL_BINARY) {
        return exec_touch_binary(s, env, out);
    }
    struct store_result result;
    uint32_t exptime = exec_exptime(env, s->req->exptime);
    key_event_lookup(env, exec_key(s->req->key));
    PROBE(command__touch, env->client_fd, s->req->key.p, s->req->key.len);
    enum store_status status =
        store_touch(env->store, exec_key(s->req->key), exptime, env->now, &result);
    ctr_add(&env->ctr->cmd_touch, 1);
    if (status == STORE_OK) {
        ctr_add(&env->ctr->slab[result.class_id].touch_hits, 1);
        return exec_reply(s, env, out, REPLY_TOUCHED);
    }
    ctr_add(&env->ctr->touch_misses, 1);
    exec_count_gone(env, result.found);
    return exec_reply(s, env, out, REPLY_NOT_FOUND);
}

enum session_ran
exec_delete(struct session *s, const struct env *env, struct chain *out)
{
    struct store_result result;
    struct store_cut cut = {.has_compare = s->req->compare != 0,
                            .compare = s->req->compare};
    key_event_delete(env, exec_key(s->req->key));
    PROBE(command__delete, env->client_fd, s->req->key.p, s->req->key.len);
    switch (store_delete(env->store, exec_key(s->req->key), &cut, env->now, &result)) {
    case STORE_OK:
        key_event_deleted(env, exec_key(s->req->key), false, &result);
        ctr_add(&env->ctr->slab[result.class_id].delete_hits, 1);
        return exec_reply(s, env, out, REPLY_DELETED);
    case STORE_EXISTS:
        return exec_reply(s, env, out, REPLY_EXISTS);
    default:
        ctr_add(&env->ctr->delete_misses, 1);
        exec_count_gone(env, result.found);
        return exec_reply(s, env, out, REPLY_NOT_FOUND);
    }
}
