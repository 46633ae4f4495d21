/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/buf.h"

static bool
is_pooled(const struct buf *b)
{
    return b->cap == BUF_CAPACITY;
}

static void
release(struct buf *b, struct pool *pool)
{
    if (is_pooled(b)) {
        pool_put(pool, b->mem);
    } else {
        free(b->mem);
    }
}

static void
move_into(struct buf *b, char *mem, uint32_t cap)
{
    uint32_t len = (uint32_t)buf_len(b);
    if (len > 0) {
        memmove(mem, buf_unread(b), len);
    }
    b->mem = mem;
    b->read = 0;
    b->write = len;
    b->cap = cap;
}

bool
buf_open(struct buf *b, struct pool *pool, char **space, size_t *len)
{
    if (!is_pooled(b)) {
        char *block = pool_get(pool);
        if (block == NULL) {
            return false;
        }
        char *parked = b->mem;
        move_into(b, block, BUF_CAPACITY);
        free(parked);
    } else if (b->read == b->write) {
        b->read = b->write = 0;
    } else if (b->read > 0) {
        move_into(b, b->mem, BUF_CAPACITY);
    }
    *space = b->mem + b->write;
    *len = b->cap - b->write;
    return true;
}

void
buf_fill(struct buf *b, size_t n)
{
    must(n <= b->cap - b->write);
    b->write += (uint32_t)n;
}

bool
buf_detach(struct buf *b, struct pool *pool)
{
    size_t len = buf_len(b);
    if (len == 0) {
        buf_fini(b, pool);
        return true;
    }
    if (!is_pooled(b)) {
        return true;
    }
    char *copy = len < BUF_CAPACITY ? malloc(len) : NULL;
    if (copy == NULL) {
        return false;
    }
    char *block = b->mem;
    move_into(b, copy, (uint32_t)len);
    pool_put(pool, block);
    return true;
}

void
buf_park(struct buf *b, struct pool *pool)
{
    size_t len = buf_len(b);
    if (likely(len == 0)) {
        buf_fini(b, pool);
    } else if (len <= BUF_PARKED_MAX) {
        (void)!buf_detach(b, pool); /* keeping the block is only a waste */
    }
}

void
buf_fini(struct buf *b, struct pool *pool)
{
    if (b->mem != NULL) {
        release(b, pool);
    }
    *b = (struct buf){.mem = NULL};
}
