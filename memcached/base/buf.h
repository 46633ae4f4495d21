/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Input buffer of a connection.
 *
 *      mem          read           write               cap
 *       |  consumed  |  unread bytes |  free space       |
 *
 * Memory is taken only while it is needed: a block of the worker's pool while bytes arrive
 * and are parsed, nothing while the connection is idle, and a small private copy when an
 * idle connection has sent half a request. Owner: the connection's worker thread.
 */
#pragma once

#include "base/must.h"
#include "base/pool.h"

#define BUF_CAPACITY POOL_BLOCK_BYTES
#define BUF_PARKED_MAX 2048 /* unread bytes up to this are parked in a private copy */

struct buf {
    char *mem;
    uint32_t read, write, cap;
};

static inline const char *
buf_unread(const struct buf *b)
{
    return b->mem + b->read;
}

static inline size_t
buf_len(const struct buf *b)
{
    return b->write - b->read;
}

static inline void
buf_consume(struct buf *b, size_t n)
{
    must(n <= buf_len(b));
    b->read += (uint32_t)n;
}

/* Makes the free space behind the unread bytes as large as a block allows and returns it
 * through *space; its length is 0 when BUF_CAPACITY bytes are unread. False: no memory. */
must_check bool buf_open(struct buf *b, struct pool *pool, char **space, size_t *len);
/* n bytes have been written to the free space. */
void buf_fill(struct buf *b, size_t n);
/* Gives back what an idle connection does not need; the unread bytes stay. */
void buf_park(struct buf *b, struct pool *pool);
/* The unread bytes leave the pool for memory of their own, so that another thread's may take
 * them over. False: no memory, or a whole block is unread. */
must_check bool buf_detach(struct buf *b, struct pool *pool);
/* Drops everything. */
void buf_fini(struct buf *b, struct pool *pool);
