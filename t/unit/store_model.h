/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A model of the store that is plainly right: an array of entries, one a key; what a store of
 * each mode does to an entry; and random keys, values and times.
 */
#pragma once

#include "base/rng.h"
#include "check_store.h"

#define KEYS 16000u /* 4096 buckets at first: grows twice */
#define OPERATIONS 120000u
#define VALUE_MAX 700u /* appended to until it is chained */
#define HELD_MAX 64u
#define CHUNK_MAX 512u

struct entry {
    bool is_present, is_stale, is_won, is_fetched, is_binary;
    uint32_t flags, exptime, stored;
    uint64_t cas;
    size_t len;
    char value[VALUE_MAX];
};

struct held {
    struct item *item;
    size_t len;
    char value[VALUE_MAX];
};

struct model {
    struct store *store;
    struct rng rng;
    bool use_cas;
    uint32_t now;
    uint64_t cas;
    uint32_t flush_at; /* a future flush that is remembered, or 0 */
    uint64_t border;   /* stored before: gone */
    unsigned held_count, hits;
    struct held held[HELD_MAX];
    bool is_walking;
    uint32_t ticket;
    struct entry entries[KEYS];
};

static inline unsigned
below(struct model *m, unsigned bound)
{
    return (unsigned)rng_below(&m->rng, bound);
}

static inline struct entry *
live(struct model *m, unsigned i)
{
    struct entry *e = &m->entries[i];

    if (m->flush_at != 0 && m->flush_at <= m->now && e->stored <= m->flush_at) {
        e->is_present = false;
    }
    if (e->stored < m->border || (e->exptime != 0 && e->exptime <= m->now)) {
        e->is_present = false;
    }
    return e->is_present ? e : NULL;
}

static inline struct key
key_text(unsigned i, char text[64])
{
    int n = snprintf(text, 64, "key-%u-%.*s", i, (int)(i % 40),
                     "........................................");

    return (struct key){text, (size_t)n};
}

static inline void
number_entry(struct model *m, struct entry *e, uint64_t chosen)
{
    if (m->use_cas) {
        e->cas = chosen != 0 ? chosen : ++m->cas;
    }
}

static inline uint64_t
random_cas(struct model *m)
{
    return below(m, 8) == 0 ? 1 + below(m, 100000) : 0;
}

/* A new item in the place of the old one. */
static inline void
store_entry(struct model *m, struct entry *e, const char *value, size_t len,
            uint64_t chosen)
{
    e->is_present = true;
    e->is_stale = false;
    e->is_won = false;
    e->is_fetched = false;
    e->stored = m->now;
    number_entry(m, e, chosen);
    e->len = len;
    memmove(e->value, value, len);
}

static inline size_t
random_value(struct model *m, char value[VALUE_MAX])
{
    size_t len;

    if (below(m, 3) == 0) {
        len = (size_t)snprintf(value, VALUE_MAX, "%u", below(m, 2000));
        return len;
    }
    len = below(m, below(m, 10) == 0 ? VALUE_MAX : 60);
    for (size_t i = 0; i < len; i++) {
        value[i] = (char)('A' + below(m, 26));
    }
    return len;
}

static inline uint32_t
random_exptime(struct model *m)
{
    return below(m, 2)         ? STORE_NEVER
           : below(m, 20) == 0 ? STORE_EXPIRED
                               : m->now + below(m, 40);
}

static inline enum store_status
model_absent(const struct store_put *put)
{
    switch (put->mode) {
    case STORE_ADD:
        return STORE_OK;
    case STORE_SET:
        return put->has_compare ? STORE_MISS : STORE_OK;
    case STORE_REPLACE:
        return put->has_compare ? STORE_MISS : STORE_NOT_STORED;
    case STORE_APPEND:
    case STORE_PREPEND:
        return put->creates && !put->has_compare ? STORE_OK : STORE_NOT_STORED;
    }
    return STORE_BUSY;
}

struct offer {
    char value[VALUE_MAX];
    size_t len;
    uint32_t flags, exptime;
    bool is_binary;
};

/* What the model says about a store, which it also carries out. */
static inline enum store_status
model_store(struct model *m, unsigned i, const struct store_put *put,
            const struct offer *offer)
{
    struct entry *e = live(m, i);
    bool is_append = put->mode == STORE_APPEND;
    bool is_join = is_append || put->mode == STORE_PREPEND;
    bool is_late = false, was_won = false;
    char both[2 * VALUE_MAX];
    enum store_status status;

    if (e == NULL) {
        status = model_absent(put);
        if (status != STORE_OK) {
            return status;
        }
    } else {
        if (put->mode == STORE_ADD) {
            return STORE_NOT_STORED;
        }
        is_late = put->has_compare && m->use_cas && e->cas != put->compare;
        if (is_late && !(put->accepts_stale && put->compare < e->cas)) {
            return STORE_EXISTS;
        }
        was_won = e->is_won;
    }
    if (e != NULL && is_join) {
        memcpy(both + (is_append ? 0 : offer->len), e->value, e->len);
        memcpy(both + (is_append ? e->len : 0), offer->value, offer->len);
        store_entry(m, e, both, e->len + offer->len, put->new_cas);
    } else {
        e = &m->entries[i];
        store_entry(m, e, offer->value, offer->len, put->new_cas);
        e->flags = offer->flags;
        e->exptime = is_late ? e->exptime : offer->exptime;
    }
    e->is_binary = offer->is_binary;
    e->is_stale = is_late;
    e->is_won = is_late && was_won;
    return STORE_OK;
}
