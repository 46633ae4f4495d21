/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/exec.h"

#include "base/probe.h"
#include "proto/meta.h"
#include "serve/key_event.h"

static const enum store_mode modes[VERB_COUNT] = {
    [VERB_SET] = STORE_SET,         [VERB_ADD] = STORE_ADD,
    [VERB_REPLACE] = STORE_REPLACE, [VERB_APPEND] = STORE_APPEND,
    [VERB_PREPEND] = STORE_PREPEND, [VERB_CAS] = STORE_SET,
};

/* A store that compares and swaps: cas, and what a binary client sends a CAS with. */
static bool
is_cas(const struct req *req)
{
    bool joins = req->verb == VERB_APPEND || req->verb == VERB_PREPEND;
    return req->protocol == PROTOCOL_BINARY ? req->compare != 0 && !joins
                                            : req->verb == VERB_CAS;
}

static enum watch_cmd
cmd_of(const struct req *req)
{
    return is_cas(req) ? WATCH_CMD_CAS : key_event_cmd(modes[req->verb]);
}

/* A value that could not be stored must not leave an older one visible. */
static void
unlink_old(const struct env *env, struct key key)
{
    struct store_result ignored;
    /* absent is as good as deleted */
    enum store_status status = store_delete(env->store, key, NULL, env->now, &ignored);
    must(status == STORE_OK || status == STORE_MISS);
}

static bool
unlinks_old(const struct req *req, const struct env *env)
{
    return req->verb == VERB_SET || (req->protocol != PROTOCOL_BINARY &&
                                     env->conf->rules->unlinks_on_any_failed_store);
}

/* There is no memory for a value, or it is too large. */
static enum reply
give_up(const struct env *env, struct key key, bool unlinks, enum store_status status)
{
    bool is_large = status == STORE_TOO_LARGE;
    ctr_add(is_large ? &env->ctr->store_too_large : &env->ctr->store_no_memory, 1);
    if (unlinks) {
        key_event_lookup(env, key);
        unlink_old(env, key);
    }
    return is_large ? REPLY_TOO_LARGE : REPLY_NO_MEMORY_STORING;
}

enum reply
exec_set(const struct env *env, const struct ascii_set *set, const char *value,
         uint8_t owner)
{
    struct key key = exec_key(set->key);
    struct store_value to = {.p = value,
                             .len = set->value_len,
                             .flags = set->flags,
                             .exptime = exec_exptime(env, set->exptime),
                             .owner = owner};
    uint8_t class_id;
    enum store_status status = store_set(env->store, key, &to, env->now, &class_id);
    if (unlikely(status != STORE_OK)) {
        return give_up(env, key, true, status);
    }
    ctr_add(&env->ctr->slab[class_id].cmd_set[false], 1);
    PROBE(command__set, env->client_fd, key.p, (int)key.len, (int)to.len);
    return REPLY_STORED;
}

enum session_ran
exec_store_begin(struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = s->req;
    char decoded[REQ_KEY_MAX];
    bool is_meta = req->verb == VERB_MS;
    struct slice word = is_meta ? meta_key(req, decoded) : req->key;
    struct key key = exec_key(word);
    key_event_set(env, key);
    enum store_status status =
        store_reserve(env->store, key, req->flags, exec_exptime(env, req->exptime),
                      req->value_len, env->now, &s->item);
    if (status == STORE_OK) {
        item_set_owner(s->item, env->owner);
        if ((is_meta && meta_has(req, 'b')) || exec_has_binary_key(req)) {
            item_mark_binary_key(s->item);
        }
        return RAN_BODY;
    }
    key_event_refused(env, key, is_meta ? exec_meta_cmd(req) : cmd_of(req), status);
    s->swallow = (uint64_t)req->value_len +
                 (req->protocol == PROTOCOL_BINARY ? 0 : LINE_END_BYTES);
    enum reply reply = give_up(env, key, unlinks_old(req, env), status);
    return exec_reply(s, env, out, reply);
}

static const enum reply commit_replies[] = {
    [STORE_OK] = REPLY_STORED,
    [STORE_MISS] = REPLY_NOT_FOUND,
    [STORE_EXISTS] = REPLY_EXISTS,
    [STORE_NOT_STORED] = REPLY_NOT_STORED,
    [STORE_TOO_LARGE] = REPLY_NOT_STORED, /* append and prepend: the old value stays */
    [STORE_NO_MEMORY] = REPLY_NOT_STORED,
};

static struct store_put
put_of(const struct req *req)
{
    if (req->protocol == PROTOCOL_BINARY) {
        return (struct store_put){.mode = is_cas(req) ? STORE_SET : modes[req->verb],
                                  .has_compare = req->compare != 0,
                                  .compare = req->compare};
    }
    return (struct store_put){
        .mode = modes[req->verb], .has_compare = is_cas(req), .compare = req->number};
}

void
exec_count_cas(const struct env *env, enum store_status status, uint8_t class_id)
{
    struct serve_slab_ctr *slab = &env->ctr->slab[class_id];
    if (status == STORE_OK) {
        ctr_add(&slab->cas_hits, 1);
    } else if (status == STORE_EXISTS) {
        ctr_add(&slab->cas_badval, 1);
    } else if (status == STORE_MISS) {
        ctr_add(&env->ctr->cas_misses, 1);
    }
}

/* With CAS disabled, 1.6 never lets a cas replace anything. */
static enum store_status
commit_without_cas(const struct env *env, struct item *item, struct store_result *result)
{
    struct key key = {item_key(item), item_key_len(item)};
    struct item *old;
    enum store_status status = store_get(env->store, key, env->now, &old);
    *result = (struct store_result){.class_id = 0};
    if (status == STORE_OK) {
        result->class_id = item_class(old);
        store_release(env->store, old);
    }
    store_release(env->store, item);
    return status == STORE_OK ? STORE_EXISTS : STORE_MISS;
}

enum store_status
exec_commit(const struct env *env, struct item *item, const struct store_put *put,
            struct store_result *result)
{
    bool is_cas =
        put->has_compare && (put->mode == STORE_SET || put->mode == STORE_REPLACE);
    if (is_cas && !env->conf->use_cas && !env->conf->rules->cas_without_cas_stores) {
        return commit_without_cas(env, item, result);
    }
    return store_commit(env->store, item, put, env->now, result);
}

static void
probe_store(const struct env *env, enum verb verb, const struct item *item)
{
    const char *key = item_key(item);
    int len = (int)item_key_len(item);
    int value_len = (int)item_value_len(item);
    switch (verb) {
    case VERB_ADD:
        PROBE(command__add, env->client_fd, key, len, value_len);
        break;
    case VERB_REPLACE:
        PROBE(command__replace, env->client_fd, key, len, value_len);
        break;
    case VERB_APPEND:
        PROBE(command__append, env->client_fd, key, len, value_len);
        break;
    case VERB_PREPEND:
        PROBE(command__prepend, env->client_fd, key, len, value_len);
        break;
    case VERB_CAS:
        PROBE(command__cas, env->client_fd, key, len, value_len);
        break;
    default:
        PROBE(command__set, env->client_fd, key, len, value_len);
        break;
    }
}

enum session_ran
exec_store_end(struct session *s, const struct env *env, struct chain *out)
{
    struct item *item = s->item;
    bool compares = s->req->verb == VERB_MS ? meta_has(s->req, 'C') : is_cas(s->req);
    s->item = NULL;
    ctr_add(&env->ctr->slab[item_class(item)].cmd_set[compares], 1);
    if (s->req->protocol == PROTOCOL_BINARY) {
        item_terminate(item);
    } else if (!item_is_terminated(item)) {
        store_release(env->store, item);
        return exec_reply(s, env, out, REPLY_BAD_DATA);
    }
    if (s->req->verb == VERB_MS) {
        return exec_meta_store(s, env, out, item);
    }
    struct store_put put = put_of(s->req);
    struct store_result result;
    struct key_event_put event;
    key_event_put(env, cmd_of(s->req), item, &event);
    probe_store(env, s->req->verb, item);
    enum store_status status = exec_commit(env, item, &put, &result);
    key_event_outcome(env, &event, status, &result);
    if (compares) {
        exec_count_cas(env, status, result.class_id);
    }
    return exec_reply_cas(s, env, out, commit_replies[status], result.cas);
}
