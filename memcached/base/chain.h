/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Output of a connection: a list of byte runs in sending order. Small things are copied into
 * blocks of the worker's pool, large values are borrowed in place together with a reference
 * that is released when their last byte has been sent.
 *
 *   block: | link | copied bytes ... | link (borrowed) | link | copied bytes ... |  free  |
 *             |                          |  p -> item      |
 *             +--------- next ----------->+----- next ----->+
 *
 * The links themselves live in the blocks, so a chain allocates nothing else. Owner: the
 * connection's worker thread.
 */
#pragma once

#include <sys/uio.h>

#include "base/must.h"
#include "base/pool.h"

#define CHAIN_RESERVE_MAX 4096 /* longest contiguous copy that can be asked for */

struct chain_link; /* private */

struct chain {
    struct chain_link *first, *last;
    char *block;   /* being filled; NULL when the chain is empty */
    uint32_t used; /* bytes of it */
    size_t bytes;  /* unsent */
};

/* What all chains of a worker share. */
struct chain_env {
    struct pool *pool;
    void (*release)(void *ctx, void *owner); /* gives a borrowed run's reference back */
    void *ctx;
};

/* Contiguous space for n <= CHAIN_RESERVE_MAX bytes, of which chain_commit then takes the
 * first ones. NULL: no memory. */
char *chain_reserve(struct chain *c, const struct chain_env *env, size_t n);
/* The same, and *room: all that there is, n bytes or more. */
char *chain_window(struct chain *c, const struct chain_env *env, size_t n, size_t *room);
void chain_commit(struct chain *c, size_t n);
/* Copies any number of bytes. False: no memory, and the chain is cut anywhere: close. */
must_check bool chain_copy(struct chain *c, const struct chain_env *env, const void *p,
                           size_t n);
/* Appends p[0..n) by reference; the chain owns `owner` from here on if true is returned. An
 * owner of NULL owns nothing: its bytes are covered by a later run's owner. */
must_check bool chain_borrow(struct chain *c, const struct chain_env *env, const char *p,
                             size_t n, void *owner);

/* Fills iov with the runs at the front, at most max of them and max_bytes bytes. */
unsigned chain_iov(const struct chain *c, struct iovec *iov, unsigned max,
                   size_t max_bytes);
/* n bytes from the front have been sent. */
void chain_consume(struct chain *c, const struct chain_env *env, size_t n);
/* Releases everything unsent. */
void chain_clear(struct chain *c, const struct chain_env *env);
