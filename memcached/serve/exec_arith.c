/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * incr, decr, touch and delete: one key, a short answer.
 */
#include "serve/exec.h"

#include "base/clock.h"
#include "store/expiry.h"

static struct key
key_of(const struct session *s)
{
    return (struct key){s->req.key.p, s->req.key.len};
}

enum session_ran
exec_arith(struct session *s, const struct env *env, struct chain *out)
{
    bool increments = s->req.verb == VERB_INCR;
    struct store_sum sum = {.increments = increments, .delta = s->req.number};
    char number[STORE_NUMBER_DIGITS];
    size_t digits = 0;
    struct store_result result;
    enum store_status status =
        store_arith(env->store, key_of(s), &sum, env->now, number, &digits, &result);
    struct serve_slab_ctr *slab = &env->ctr->slab[result.class_id];
    switch (status) {
    case STORE_OK:
        ctr_add(increments ? &slab->incr_hits : &slab->decr_hits, 1);
        if (s->req.is_noreply) {
            return RAN_DONE;
        }
        return ascii_put_number(out, &env->chain, number, digits) ? RAN_DONE
                                                                  : RAN_NO_MEMORY;
    case STORE_NOT_NUMERIC:
        return exec_reply(s, env, out, REPLY_NOT_NUMERIC);
    case STORE_NO_MEMORY:
        return exec_reply(s, env, out, REPLY_NO_MEMORY);
    default:
        ctr_add(increments ? &env->ctr->incr_misses : &env->ctr->decr_misses, 1);
        return exec_reply(s, env, out, REPLY_NOT_FOUND);
    }
}

enum session_ran
exec_touch(struct session *s, const struct env *env, struct chain *out)
{
    struct store_result result;
    uint32_t exptime = expiry_from_wire(s->req.exptime, env->now, clock_started());
    enum store_status status =
        store_touch(env->store, key_of(s), exptime, env->now, &result);
    ctr_add(&env->ctr->cmd_touch, 1);
    if (status == STORE_OK) {
        ctr_add(&env->ctr->slab[result.class_id].touch_hits, 1);
        return exec_reply(s, env, out, REPLY_TOUCHED);
    }
    ctr_add(&env->ctr->touch_misses, 1);
    return exec_reply(s, env, out, REPLY_NOT_FOUND);
}

enum session_ran
exec_delete(struct session *s, const struct env *env, struct chain *out)
{
    struct store_result result;
    if (store_delete(env->store, key_of(s), NULL, env->now, &result) == STORE_OK) {
        ctr_add(&env->ctr->slab[result.class_id].delete_hits, 1);
        return exec_reply(s, env, out, REPLY_DELETED);
    }
    ctr_add(&env->ctr->delete_misses, 1);
    return exec_reply(s, env, out, REPLY_NOT_FOUND);
}
