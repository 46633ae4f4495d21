/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The store of a test, which FIXTURE(set_up_store, tear_down_store) opens and closes. A test that
 * wants another one changes conf and opens it again.
 */
#pragma once

#include "check_main.h"
#include "check_store.h"

static struct store *s;
static struct store_conf conf;
static struct store_result r;
static char number[STORE_NUMBER_DIGITS]; /* of arith */
static size_t digits;

static inline void
set_up_store(void)
{
    conf = default_conf(64 * MIB);
    s = open_store(&conf);
}

static inline void
tear_down_store(void)
{
    store_destroy(&s);
    ck_assert_ptr_null(s);
}

static inline void
reopen(void)
{
    store_destroy(&s);
    s = open_store(&conf);
}

static inline void
reopen_with(unsigned mib)
{
    conf.limit_bytes = (uint64_t)mib * MIB;
    reopen();
}

/* A reference to the item of that key, which must be there. */
static inline struct item *
hold(const char *key, uint32_t now)
{
    struct item *it;
    expect_ok(store_get(s, key_of(key), now, &it));
    return it;
}

static inline enum store_status
count_by(const char *key, bool increments, uint64_t delta)
{
    return arith(s, key, increments, delta, NOW, number, &digits, &r);
}

static inline void
drop(const char *key, uint32_t now)
{
    expect_ok(store_delete(s, key_of(key), NULL, now, &r));
}

/* ---- the items prefix[from] to prefix[to - 1] ------------------------------------------ */

static inline void
put_range(const char *prefix, unsigned from, unsigned to, size_t len, uint32_t exptime,
          uint32_t now)
{
    for (unsigned i = from; i < to; i++) {
        expect_ok(put_sized(s, numbered(prefix, i), len, exptime, now));
    }
}

static inline unsigned
count_range(const char *prefix, unsigned from, unsigned to, uint32_t now)
{
    unsigned there = 0;
    for (unsigned i = from; i < to; i++) {
        there += is_there(s, numbered(prefix, i), now);
    }
    return there;
}

static inline void
drop_range(const char *prefix, unsigned from, unsigned to, uint32_t now)
{
    for (unsigned i = from; i < to; i++) {
        drop(numbered(prefix, i), now);
    }
}
