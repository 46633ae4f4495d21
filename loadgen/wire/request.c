/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/request.h"

const struct request_words request_of_mix[MIX_VERBS] = {
    [MIX_GET] = {CODEC_GET, THEN_NOTHING},
    [MIX_GETS] = {CODEC_GETS, THEN_NOTHING},
    [MIX_SET] = {CODEC_SET, THEN_NOTHING},
    [MIX_ADD] = {CODEC_ADD, THEN_NOTHING},
    [MIX_CAS] = {CODEC_GETS, THEN_CAS},
    [MIX_DELETE] = {CODEC_DELETE, THEN_NOTHING},
    [MIX_TOUCH] = {CODEC_TOUCH, THEN_NOTHING},
    [MIX_INCR] = {CODEC_INCR, THEN_NOTHING},
    [MIX_INSERT] = {CODEC_SET, THEN_NOTHING},
    [MIX_SCAN] = {CODEC_GET, THEN_NOTHING},
    [MIX_RMW] = {CODEC_GET, THEN_SET},
};

const struct request_words request_of_trace[TRACE_VERBS_END] = {
    [TRACE_GET] = {CODEC_GET, THEN_NOTHING},
    [TRACE_GETS] = {CODEC_GETS, THEN_NOTHING},
    [TRACE_SET] = {CODEC_SET, THEN_NOTHING},
    [TRACE_ADD] = {CODEC_ADD, THEN_NOTHING},
    [TRACE_REPLACE] = {CODEC_REPLACE, THEN_NOTHING},
    [TRACE_CAS] = {CODEC_GETS, THEN_CAS},
    [TRACE_APPEND] = {CODEC_APPEND, THEN_NOTHING},
    [TRACE_PREPEND] = {CODEC_PREPEND, THEN_NOTHING},
    [TRACE_DELETE] = {CODEC_DELETE, THEN_NOTHING},
    [TRACE_INCR] = {CODEC_INCR, THEN_NOTHING},
    [TRACE_DECR] = {CODEC_DECR, THEN_NOTHING},
    [TRACE_TOUCH] = {CODEC_TOUCH, THEN_NOTHING},
};

unsigned
request_needs(struct request_words words)
{
    return CODEC_BIT(words.verb) | (words.then == THEN_CAS   ? CODEC_BIT(CODEC_CAS)
                                    : words.then == THEN_SET ? CODEC_BIT(CODEC_SET)
                                                             : 0);
}

static size_t
key_max(const struct workload *w)
{
    return workload_key_len_max(w) + CODEC_KEY_ROOM;
}

size_t
request_value_max(const struct workload *w)
{
    return key_max(w) + workload_value_len_max(w) + CLIENT_REQUEST_ROOM;
}

size_t
request_len_max(const struct workload *w)
{
    size_t get_max = w->keys_max * key_max(w) + CLIENT_REQUEST_ROOM;
    size_t set_max = request_value_max(w);
    return get_max > set_max ? get_max : set_max;
}

static struct codec_lease
lease_of(const struct workload *w, uint64_t key)
{
    uint32_t expiry = (uint32_t)workload_expiry(w, key);
    return (struct codec_lease){WORKLOAD_LEASE_S, expiry / WORKLOAD_RECACHE_SHARE};
}

/* Of any keys. */
static char *
put_get(const struct request *r, const struct workload *w, const struct codec *codec,
        char *p)
{
    char key[WORKLOAD_KEY_MAX];
    struct codec_get get = {.verb = r->op.verb, .keys = r->op.keys};
    p += codec_put_get(codec, p, &get);
    for (unsigned i = 0; i < r->op.keys; i++) {
        size_t len = workload_put_key(w, r->keys[i], key);
        bool is_leased = w->conf.leases && workload_can_fill(w, r->keys[i]);
        struct codec_lease lease =
            is_leased ? lease_of(w, r->keys[i]) : (struct codec_lease){0, 0};
        get.lease = is_leased ? &lease : NULL;
        p += codec->put_key(p, &get, key, len);
    }
    return p + codec_put_get_end(codec, p, &get);
}

static inline char *
put_prepared(uint64_t key, const struct workload *w, const struct codec_stencil *get,
             struct num_padded *digits, char *p)
{
    size_t len = codec_put_stencil(p, get);
    workload_complete_key(w, key, p + get->key_at, digits);
    return p + len;
}

/* The same of several: the first one, the others behind it, and the end behind the last. */
static char *
put_list(const struct request *r, const struct workload *w,
         const struct codec_stencil *get, struct num_padded *digits, char *p)
{
    struct num_padded others;
    const char *another = get->bytes + get->list_at;
    const size_t len = get->key_end - get->list_at, end_len = get->len - get->key_end;
    p = put_prepared(r->keys[0], w, get, digits, p) - end_len;
    for (unsigned i = 1; i < r->op.keys; i++) {
        memcpy(p, another, len);
        workload_complete_key(w, r->keys[i], p + (get->key_at - get->list_at), &others);
        p += len;
    }
    memcpy(p, get->bytes + get->key_end, end_len);
    return p + end_len;
}

static char *
put_store(const struct request *r, const struct workload *w, const struct codec *codec,
          uint64_t salt, char *p)
{
    char key[WORKLOAD_KEY_MAX];
    struct codec_store store = {
        .verb = r->op.verb,
        .key = key,
        .key_len = workload_put_key(w, r->keys[0], key),
        .flags = w->conf.flags,
        .exptime = workload_expiry(w, r->keys[0]),
        .value_len = workload_set_len(w, r->keys[0], salt),
        .cas = r->cas,
    };
    p += codec->put_store(p, &store);
    memcpy(p, workload_value(w, r->keys[0]), store.value_len);
    p += store.value_len;
    return p + codec_put_store_end(codec, p, &store);
}

static char *
put_order(const struct request *r, const struct workload *w, const struct codec *codec,
          char *p)
{
    char key[WORKLOAD_KEY_MAX];
    struct codec_order order = {
        .verb = r->op.verb,
        .key = key,
        .key_len = workload_put_key(w, r->keys[0], key),
        .number =
            r->op.verb == CODEC_TOUCH ? (uint64_t)workload_expiry(w, r->keys[0]) : 1,
    };
    return p + codec->put_order(p, &order);
}

/* Other requests than most; those pay nothing for it. */
static __attribute__((noinline)) char *
put_other(const struct request *r, const struct workload *w,
          const struct request_style *style, uint64_t salt, struct num_padded *digits,
          char *p)
{
    const struct codec *codec = style->codec;
    switch (r->op.verb) {
    case CODEC_GET:
    case CODEC_GETS:
        return style->get != NULL && r->op.verb == CODEC_GET && codec->lists_keys
                   ? put_list(r, w, style->get, digits, p)
                   : put_get(r, w, codec, p);
    case CODEC_SET:
    case CODEC_ADD:
    case CODEC_REPLACE:
    case CODEC_CAS:
    case CODEC_APPEND:
    case CODEC_PREPEND:
        return put_store(r, w, codec, salt, p);
    default:
        return put_order(r, w, codec, p);
    }
}

char *
request_put(const struct request *r, const struct workload *w,
            const struct request_style *style, uint64_t salt, struct num_padded *digits,
            char *p)
{
    return likely(r->op.verb == CODEC_GET && r->op.keys == 1 && style->get != NULL)
               ? put_prepared(r->keys[0], w, style->get, digits, p)
               : put_other(r, w, style, salt, digits, p);
}
