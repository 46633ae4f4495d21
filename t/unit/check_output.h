/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the tests of replies share: a chain that replies go into and its contents as bytes.
 */
#pragma once

#include "base/chain.h"
#include "base/pool.h"
#include "check_unit.h"

static struct pool pool;
static struct chain chain;
static struct chain_env env;

static inline void
release(void *ctx, void *owner)
{
    (void)ctx, (void)owner;
    ck_abort_msg("replies borrow nothing");
}

static inline void
set_up_chain(void)
{
    pool_init(&pool);
    chain = (struct chain){.first = NULL};
    env = (struct chain_env){.pool = &pool, .release = release};
}

static inline void
tear_down_chain(void)
{
    chain_clear(&chain, &env);
    pool_fini(&pool);
}

/* Takes all output and compares it. */
static inline void
check_output(const char *expected, size_t n)
{
    struct text sent = {.p = NULL};
    while (chain.bytes > 0) {
        struct iovec iov;
        ck_assert_uint_eq(chain_iov(&chain, &iov, 1, SIZE_MAX), 1);
        text_add(&sent, iov.iov_base, iov.iov_len);
        chain_consume(&chain, &env, iov.iov_len);
    }
    ck_assert_uint_eq(sent.len, n);
    ck_assert(n == 0 || memcmp(sent.p, expected, n) == 0);
    text_free(&sent);
}
