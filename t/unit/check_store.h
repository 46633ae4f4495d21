/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the unit tests of the store share: a configuration to start from and short forms of
 * the operations, with the clock as an argument.
 */
#pragma once

#include "audit_store.h"
#include "check_unit.h"
#include "store/core.h"
#include "store/store.h"

#define MIB (1024u * 1024u)
#define NOW 100u
#define expect_ok(status) ck_assert_int_eq(status, STORE_OK)

/* "item7"; the text is good until the eighth call after this one. */
static inline const char *
numbered(const char *prefix, size_t i)
{
    static char names[8][32];
    static unsigned next;
    char *name = names[next++ % 8];
    snprintf(name, sizeof names[0], "%s%zu", prefix, i);
    return name;
}

/* The lists as they are by default, without one for short lives. */
static inline struct store_lru_conf
segmented_lru(void)
{
    return (struct store_lru_conf){.policy = STORE_LRU_SEGMENTED,
                                   .hot_pct = 20,
                                   .warm_pct = 40,
                                   .hot_factor = 0.2,
                                   .warm_factor = 2.0,
                                   .temp_ttl = -1};
}

static inline struct store_conf
default_conf(uint64_t limit_bytes)
{
    return (struct store_conf){
        .limit_bytes = limit_bytes,
        .growth_factor = 1.25,
        .min_space = 48,
        .item_max = MIB,
        .chunk_max = MIB,
        .hash_power = 12,
        .threads = 1,
        .hash_seed = 42,
        .use_cas = true,
        .can_evict = true,
        .can_grow_hash = true,
        .inline_suffix = true,
    };
}

static inline struct store *
open_store(const struct store_conf *conf)
{
    char err[128] = "";
    struct store *s = store_create(conf, err, sizeof(err));

    ck_assert_msg(s != NULL, "%s", err);
    return s;
}

/* How many items one visit has moved. */
static inline unsigned
juggle(struct store *s, unsigned class_id, unsigned moves, uint32_t now)
{
    struct store_juggled done = store_juggle(s, class_id, moves, now);

    return done.settled + done.reordered;
}

static inline struct key
key_of(const char *text)
{
    return (struct key){text, strlen(text)};
}

static inline void
fill_item(struct item *it, const char *value, size_t len)
{
    ck_assert_uint_eq(item_value_len(it), len);
    fill_value(it, value, len);
}

/* With a cas that is not 0: compares. */
static inline enum store_status
put_full(struct store *s, enum store_mode mode, struct key key, const char *value,
         size_t len, uint32_t flags, uint32_t exptime, uint64_t cas, uint32_t now,
         struct store_result *result)
{
    struct item *it;
    enum store_status status =
        store_reserve(s, key, flags, exptime, (uint32_t)len, now, &it);

    memset(result, 0, sizeof(*result));
    if (status != STORE_OK) {
        ck_assert_ptr_null(it);
        return status;
    }
    fill_item(it, value, len);
    return store_commit(
        s, it, &(struct store_put){.mode = mode, .has_compare = cas != 0, .compare = cas},
        now, result);
}

static inline enum store_status
put(struct store *s, enum store_mode mode, const char *key, const char *value,
    uint32_t exptime, uint32_t now)
{
    struct store_result result;

    return put_full(s, mode, key_of(key), value, strlen(value), 0, exptime, 0, now,
                    &result);
}

/* A value of `len` bytes x. */
static inline enum store_status
put_sized(struct store *s, const char *key, size_t len, uint32_t exptime, uint32_t now)
{
    struct store_result result;
    char *value = malloc(len + 1);

    memset(value, 'x', len + 1);
    enum store_status status =
        put_full(s, STORE_SET, key_of(key), value, len, 0, exptime, 0, now, &result);
    free(value);
    return status;
}

static inline enum store_status
arith(struct store *s, const char *key, bool increments, uint64_t delta, uint32_t now,
      char number[STORE_NUMBER_DIGITS], size_t *digits, struct store_result *result)
{
    struct store_sum sum = {.increments = increments, .delta = delta};

    return store_arith(s, key_of(key), &sum, now, number, digits, result);
}

/* The value of a referenced item as a fresh string; checks that CR LF follows it. */
static inline char *
read_item(const struct item *it)
{
    size_t len = item_value_len(it);
    char *value = malloc(len + 2);

    copy_value(it, value);
    value[len] = '\0';
    return value;
}

/* True when key is there with this value. */
static inline bool
has(struct store *s, const char *key, const char *value, uint32_t now)
{
    struct item *it;

    if (store_get(s, key_of(key), now, &it) != STORE_OK) {
        return false;
    }
    char *text = read_item(it);
    bool is_same = item_value_len(it) == strlen(value) && strcmp(text, value) == 0;
    store_release(s, it);
    free(text);
    return is_same;
}

static inline enum store_status
lookup(struct store *s, const char *key, uint32_t now)
{
    struct item *it;
    enum store_status status = store_get(s, key_of(key), now, &it);

    if (status == STORE_OK) {
        store_release(s, it);
    } else {
        ck_assert_ptr_null(it);
    }
    return status;
}

static inline bool
is_there(struct store *s, const char *key, uint32_t now)
{
    return lookup(s, key, now) == STORE_OK;
}

static inline struct store_totals
totals_of(struct store *s)
{
    struct store_totals t;

    store_totals(s, &t);
    return t;
}

static inline struct store_class_stats
class_of(struct store *s, unsigned class_id, uint32_t now)
{
    struct store_class_stats c;

    store_class_stats(s, class_id, now, &c);
    return c;
}

/* Nothing linked, nothing held: every chunk is free and no byte is accounted. */
static inline void
assert_empty(struct store *s)
{
    struct store_totals t = totals_of(s);

    ck_assert_uint_eq(t.curr_items, 0);
    ck_assert_uint_eq(t.item_bytes, 0);
    for (unsigned i = 1; i <= store_class_count(s); i++) {
        struct store_class_stats c = class_of(s, i, NOW);

        ck_assert_uint_eq(c.used_chunks, 0);
        ck_assert_uint_eq(c.requested_bytes, 0);
    }
    audit_store(s);
}
