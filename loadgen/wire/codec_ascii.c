/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * memcached's text protocol.
 */
#include "loadgen/wire/codec.h"

static size_t
put_get(char *dst, const struct codec_get *get)
{
    return client_put_get(dst, get->verb == CODEC_GETS);
}

static size_t
put_key(char *dst, const struct codec_get *get, const char *key, size_t key_len)
{
    (void)get;
    return client_put_key(dst, key, key_len);
}

static size_t
put_get_end(char *dst, const struct codec_get *get)
{
    (void)get;
    return client_put_end(dst);
}

static size_t
put_store(char *dst, const struct codec_store *store)
{
    struct client_store text = {
        .verb = codec_verb_names[store->verb],
        .key = store->key,
        .key_len = store->key_len,
        .flags = store->flags,
        .exptime = store->exptime,
        .value_len = store->value_len,
        .cas = store->cas,
    };
    return client_put_store(dst, &text);
}

size_t
codec_put_text_end(char *dst, const struct codec_store *store)
{
    (void)store;
    return client_put_end(dst);
}

static size_t
put_order(char *dst, const struct codec_order *order)
{
    if (order->verb == CODEC_DELETE) {
        return client_put_delete(dst, order->key, order->key_len);
    }
    return client_put_number(dst, codec_verb_names[order->verb], order->key,
                             order->key_len, order->number);
}

/* A set of "user password" with any key. */
size_t
codec_put_text_auth(char *dst, const char *user, const char *password)
{
    struct client_store store = {
        .verb = "set",
        .key = "auth",
        .key_len = strlen("auth"),
        .value_len = strlen(user) + 1 + strlen(password),
    };
    size_t n = client_put_store(dst, &store);
    n += codec_put_text(dst + n, user);
    n += codec_put_text(dst + n, " ");
    n += codec_put_text(dst + n, password);
    return n + client_put_end(dst + n);
}

static enum client_kind
step(struct codec_parser *p, const struct codec_expect *expect, const char *buf,
     size_t len, size_t *taken, struct client_reply *reply)
{
    (void)expect; /* the replies speak for themselves */
    *taken += client_parse(&p->text, buf + *taken, len - *taken, reply);
    return reply->kind;
}

const struct codec codec_ascii = {
    .name = "ascii",
    .verbs = CODEC_BIT(CODEC_VERBS) - 1,
    .has_multiget = true,
    .lists_keys = true,
    .has_datagrams = true,
    .has_stats = true,
    .has_hits = true,
    .put_get = put_get,
    .put_key = put_key,
    .put_get_end = put_get_end,
    .put_store = put_store,
    .put_store_end = codec_put_text_end,
    .put_order = put_order,
    .put_auth = codec_put_text_auth,
    .step = step,
};
