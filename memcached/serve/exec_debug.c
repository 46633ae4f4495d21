/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * debugitem lock|unlock|ref|unref <key>: holds an item as a request under way
 * does, for tests of the background threads. It is released when the client leaves.
 */
#include "serve/exec.h"

struct debug_lock {
    struct debug_lock *next;
    struct item *item; /* a reference; NULL: the lock of the key */
    size_t key_len;
    char key[REQ_KEY_MAX];
};

static void
release(struct debug_lock *hold, const struct env *env)
{
    if (hold->item != NULL) {
        store_release(env->store, hold->item);
    } else {
        store_debug_lock(env->store, (struct key){hold->key, hold->key_len}, false);
    }
    free(hold);
}

void
exec_debug_end(struct session *s, const struct env *env)
{
    while (s->holds != NULL) {
        struct debug_lock *hold = s->holds;
        s->holds = hold->next;
        release(hold, env);
    }
}

static struct debug_lock *
hold(struct session *s, struct slice key, struct item *item)
{
    struct debug_lock *hold = malloc(sizeof *hold);
    if (hold == NULL) {
        return NULL;
    }
    *hold = (struct debug_lock){.next = s->holds, .item = item, .key_len = key.len};
    memcpy(hold->key, key.p, key.len);
    s->holds = hold;
    return hold;
}

/* The link to the lock that is held, or to the last reference to the key; "reffed" is the
 * last reference to any. */
static struct debug_lock **
find(struct session *s, struct slice key, bool is_lock)
{
    struct debug_lock **link = &s->holds;
    while (*link != NULL) {
        const struct debug_lock *h = *link;
        bool is_key = h->key_len == key.len && memcmp(h->key, key.p, key.len) == 0;
        if (is_lock ? h->item == NULL && is_key
                    : h->item != NULL && (is_key || req_word_is(key, "reffed"))) {
            break;
        }
        link = &(*link)->next;
    }
    return link;
}

/* One lock a client: a second one could be the same stripe. */
static enum reply
lock(struct session *s, const struct env *env, struct slice key)
{
    for (const struct debug_lock *h = s->holds; h != NULL; h = h->next) {
        if (h->item == NULL) {
            return REPLY_ERROR;
        }
    }
    if (hold(s, key, NULL) == NULL) {
        return REPLY_NO_MEMORY;
    }
    store_debug_lock(env->store, (struct key){key.p, key.len}, true);
    return REPLY_OK;
}

static enum reply
give_back(struct session *s, const struct env *env, struct slice key, bool is_lock)
{
    struct debug_lock **link = find(s, key, is_lock);
    struct debug_lock *found = *link;
    if (found == NULL) {
        return REPLY_MISS;
    }
    *link = found->next;
    release(found, env);
    return REPLY_OK;
}

static enum reply
ref(struct session *s, const struct env *env, struct slice key)
{
    struct store_look ask = {.is_use = false};
    struct store_seen seen;
    struct item *item;
    if (store_look(env->store, (struct key){key.p, key.len}, &ask, env->now, &seen,
                   &item) != STORE_OK) {
        return REPLY_MISS;
    }
    if (hold(s, key, item) == NULL) {
        store_release(env->store, item);
        return REPLY_NO_MEMORY;
    }
    return REPLY_OK;
}

enum session_ran
exec_debugitem(struct session *s, const struct env *env, struct chain *out)
{
    struct slice what = s->req->word[1];
    struct slice key = s->req->word[2];
    enum reply reply = REPLY_ERROR;
    if (!env->conf->allows_debug || s->req->words < 3 || key.len > REQ_KEY_MAX) {
        reply = REPLY_ERROR;
    } else if (req_word_is(what, "lock")) {
        reply = lock(s, env, key);
    } else if (req_word_is(what, "unlock")) {
        reply = give_back(s, env, key, true);
    } else if (req_word_is(what, "ref")) {
        reply = ref(s, env, key);
    } else if (req_word_is(what, "unref")) {
        reply = give_back(s, env, key, false);
    }
    return exec_reply(s, env, out, reply);
}
