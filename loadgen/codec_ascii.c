/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * memcached's text protocol.
 */
#include "loadgen/codec.h"

static const char *const verb_words[CODEC_VERBS] = {
    [CODEC_GET] = "get",     [CODEC_GETS] = "gets", [CODEC_SET] = "set",
    [CODEC_ADD] = "add",     [CODEC_CAS] = "cas",   [CODEC_DELETE] = "delete",
    [CODEC_TOUCH] = "touch", [CODEC_INCR] = "incr",
};

static size_t
put_get(char *dst, enum codec_verb verb, unsigned keys)
{
    (void)keys;
    return client_put_get(dst, verb == CODEC_GETS);
}

static size_t
put_key(char *dst, enum codec_verb verb, unsigned keys, const char *key, size_t key_len)
{
    (void)verb;
    (void)keys;
    return client_put_key(dst, key, key_len);
}

static size_t
put_get_end(char *dst, unsigned keys)
{
    (void)keys;
    return client_put_end(dst);
}

static size_t
put_store(char *dst, const struct codec_store *store)
{
    struct client_store text = {
        .verb = verb_words[store->verb],
        .key = store->key,
        .key_len = store->key_len,
        .flags = store->flags,
        .exptime = store->exptime,
        .value_len = store->value_len,
        .cas = store->cas,
    };
    return client_put_store(dst, &text);
}

static size_t
put_order(char *dst, const struct codec_order *order)
{
    if (order->verb == CODEC_DELETE) {
        return client_put_delete(dst, order->key, order->key_len);
    }
    return client_put_number(dst, verb_words[order->verb], order->key, order->key_len,
                             order->number);
}

static size_t
parse(struct codec_parser *p, const struct codec_expect *expect, const char *buf,
      size_t len, struct client_reply *reply)
{
    (void)expect; /* the replies speak for themselves */
    return client_parse(&p->text, buf, len, reply);
}

const struct codec codec_ascii = {
    .name = "ascii",
    .verbs = CODEC_BIT(CODEC_VERBS) - 1,
    .put_get = put_get,
    .put_key = put_key,
    .put_get_end = put_get_end,
    .put_store = put_store,
    .put_store_end = client_put_end,
    .put_order = put_order,
    .parse = parse,
};
