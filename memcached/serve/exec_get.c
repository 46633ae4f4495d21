/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "serve/exec.h"

#include <assert.h>

#include "base/probe.h"
#include "serve/gets.h"
#include "serve/key_event.h"

#define COPY_MAX (GETS_COPY_MAX + LINE_END_BYTES)
#define VALUE_HEAD_MAX ASCII_VALUE_HEAD_MAX

static_assert(BINARY_VALUE_HEAD_MAX <= VALUE_HEAD_MAX, "a head of either protocol fits");

static bool
is_touching(const struct req *req)
{
    return req->verb == VERB_GAT || req->verb == VERB_GATS || req->verb == VERB_TOUCH;
}

static bool
wants_cas(const struct req *req)
{
    return req->verb == VERB_GETS || req->verb == VERB_GATS;
}

static struct item *
look_up(const struct req *req, const struct env *env, struct slice word)
{
    struct key key = {word.p, word.len};
    struct item *item = NULL;
    struct serve_ctr *ctr = env->ctr;
    bool touches = is_touching(req);
    enum store_status status =
        touches ? store_get_and_touch(env->store, key, exec_exptime(env, req->exptime),
                                      env->now, &item)
                : store_get(env->store, key, env->now, &item);
    key_event_get(env, key, status, item);
    if (touches) {
        ctr_add(&ctr->cmd_touch, 1);
    }
    if (status == STORE_OK) {
        struct serve_slab_ctr *slab = &ctr->slab[item_slot(item)];
        PROBE(command__get, env->client_fd, key.p, key.len, item_value_len(item),
              item_cas(item));
        ctr_add(touches ? &slab->touch_hits : &slab->get_hits[item_list(item)], 1);
        return item;
    }
    PROBE(command__get, env->client_fd, key.p, key.len, -1, 0);
    ctr_add(touches ? &ctr->touch_misses : &ctr->get_misses, 1);
    exec_count_gone(env, status);
    return NULL;
}

static size_t
put_head(const struct req *req, const struct item *item, char *to)
{
    if (req->protocol == PROTOCOL_BINARY) {
        return binary_value_head(to, req, item_key(item), item_key_len(item),
                                 item_flags(item), item_value_len(item), item_cas(item));
    }
    return ascii_value_head(to, item_key(item), item_key_len(item), item_flags(item),
                            item_value_len(item), wants_cas(req), item_cas(item));
}

/* The value's runs, borrowed; the last one owns the reference. */
static bool
put_borrowed(const struct env *env, struct chain *out, struct item *item, size_t total)
{
    struct item_place place = {NULL, 0};
    const char *p;
    size_t offset = 0, n = item_bytes(item, 0, &p);
    n = n < total ? n : total;
    while (chain_borrow(out, &env->chain, p, n, offset + n == total ? item : NULL)) {
        offset += n;
        if (offset == total) {
            return true;
        }
        n = exec_bytes(item, &place, offset, total, &p);
    }
    /* Runs already borrowed are dropped with the chain, before they are sent. */
    store_release(env->store, item);
    return false;
}

bool
exec_put_value(const struct env *env, struct chain *out, struct item *item)
{
    size_t total = (size_t)item_value_len(item) + LINE_END_BYTES;
    if (total > COPY_MAX) {
        return put_borrowed(env, out, item, total);
    }
    char *to = chain_reserve(out, &env->chain, total);
    if (to != NULL) {
        exec_copy(to, item, total);
        chain_commit(out, total);
    }
    store_release(env->store, item);
    return to != NULL;
}

/* Appends a hit: head and value. Gives up item; false: no memory. */
static bool
put_hit(const struct req *req, const struct env *env, struct chain *out,
        struct item *item)
{
    size_t end = req->protocol == PROTOCOL_BINARY ? 0 : LINE_END_BYTES;
    size_t total = (size_t)item_value_len(item) + end;
    bool is_copied = total <= COPY_MAX;
    char *to = chain_reserve(out, &env->chain, VALUE_HEAD_MAX + (is_copied ? total : 0));
    if (to == NULL) {
        store_release(env->store, item);
        return false;
    }
    size_t head = put_head(req, item, to);
    if (is_copied) {
        exec_copy(to + head, item, total);
        chain_commit(out, head + total);
        store_release(env->store, item);
        return true;
    }
    chain_commit(out, head);
    return put_borrowed(env, out, item, total);
}

/* A hit answers with the flags. */
enum session_ran
exec_touch_binary(const struct session *s, const struct env *env, struct chain *out)
{
    const struct req *req = s->req;
    struct item *item = look_up(req, env, req->key);
    if (item == NULL) {
        return exec_reply(s, env, out, REPLY_NOT_FOUND);
    }
    char head[VALUE_HEAD_MAX];
    size_t len = binary_value_head(head, req, item_key(item), item_key_len(item),
                                   item_flags(item), 0, item_cas(item));
    store_release(env->store, item);
    return exec_ran(chain_copy(out, &env->chain, head, len));
}

static void
cut_keys(struct gets *g, struct req *req, unsigned most)
{
    most = most < GETS_KEYS ? most : GETS_KEYS;
    g->count = 0;
    while (g->count < most && req->keys > 0) {
        struct slice word = req_next_key(req);
        g->keys[g->count++].key = (struct key){word.p, word.len};
    }
}

/* Answers at most `keys` keys of the request, as far as their values are to be copied; one that is
 * not becomes the session's. Returns how many; 0: no memory. */
static unsigned
answer_keys(struct session *s, const struct env *env, struct chain *out, unsigned keys,
            const struct session_limits *limits, unsigned *misses)
{
    struct gets g;
    struct store_read read[GETS_KEYS];
    struct req *req = s->req;
    struct slice rest = req->rest;
    uint32_t left = req->keys;
    size_t room;
    char *to = chain_window(out, &env->chain, CHAIN_RESERVE_MAX, &room);
    if (to == NULL) {
        return 0;
    }
    gets_begin(&g, env, to, room);
    g.keys = read;
    g.binary = req->protocol == PROTOCOL_BINARY ? req : NULL;
    g.wants_cas = wants_cas(req);
    g.may_hold = true;
    if (limits->out_bytes - out->bytes < room) {
        g.last_begin = to + (limits->out_bytes - out->bytes);
    }
    size_t late = limits->late_bytes;
    g.value_bytes = late != 0 && late < GETS_COPY_MAX ? late : GETS_COPY_MAX;
    cut_keys(&g, req, keys);
    unsigned done = gets_run(&g);
    must(done > 0); /* the window has room for any value that is copied */
    gets_count(&g, done);
    chain_commit(out, (size_t)(g.to - to));
    s->item = g.held;
    *misses = g.misses;
    if (unlikely(done < g.count)) {
        req->rest = rest;
        req->keys = left;
        for (unsigned i = 0; i < done; i++) {
            (void)req_next_key(req);
        }
    }
    return done;
}

static enum session_ran
miss_binary(const struct session *s, const struct env *env, struct chain *out)
{
    enum session_ran ran = exec_reply(s, env, out, REPLY_NOT_FOUND);
    if (out->bytes == 0) {
        chain_clear(out, &env->chain); /* a quiet one needs no space */
    }
    return ran;
}

/* The next keys. One alone, when it is also touched or its reader is listened to, and when its value
 * is likely to be lent. */
static unsigned
answer(struct session *s, const struct env *env, struct chain *out, unsigned keys,
       const struct session_limits *limits, unsigned *misses)
{
    bool is_to_be_lent = limits->is_bulk && s->req->keys == 1;
    if (!is_to_be_lent && !is_touching(s->req) &&
        !watch_wants(env->log, WATCH_FETCHERS | WATCH_PREFIXES)) {
        return answer_keys(s, env, out, keys, limits, misses);
    }
    s->item = look_up(s->req, env, req_next_key(s->req));
    *misses = s->item == NULL;
    return 1;
}

enum session_ran
exec_retrieve(struct session *s, const struct env *env, struct chain *out,
              const struct session_limits *limits)
{
    struct req *req = s->req;
    unsigned keys = limits->keys;
    bool is_binary = req->protocol == PROTOCOL_BINARY; /* of one key, without an end */
    while (s->item != NULL || req->keys > 0) {
        if (s->item != NULL) {
            if (limits->late_bytes != 0 && item_value_len(s->item) > limits->late_bytes) {
                return RAN_LATE;
            }
            struct item *item = s->item;
            s->item = NULL;
            if (!put_hit(req, env, out, item)) {
                return RAN_NO_MEMORY;
            }
            continue;
        }
        if (keys == 0 || out->bytes >= limits->out_bytes) {
            return RAN_AGAIN;
        }
        unsigned misses;
        unsigned done = answer(s, env, out, keys, limits, &misses);
        if (done == 0) {
            return RAN_NO_MEMORY;
        }
        if (is_binary && misses > 0) {
            return miss_binary(s, env, out);
        }
        keys -= done;
    }
    return req->is_open || is_binary ? RAN_DONE : exec_reply(s, env, out, REPLY_END);
}
