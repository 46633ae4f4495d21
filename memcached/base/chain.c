/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/chain.h"

struct chain_link {
    struct chain_link *next;
    const char *p;
    size_t len;
    void *owner; /* borrowed runs */
    void *block; /* the block that ends with this link; freed with it */
};

#define LINK_ALIGN 8

static uint32_t
aligned(uint32_t used)
{
    return (used + LINK_ALIGN - 1) & ~(uint32_t)(LINK_ALIGN - 1);
}

static bool
is_growing(const struct chain *c)
{
    return c->last != NULL && c->last->p + c->last->len == c->block + c->used;
}

/* Starts a new block unless the current one has room for a link and `room` bytes. */
static bool
ensure_room(struct chain *c, const struct chain_env *env, size_t room)
{
    if (c->block != NULL &&
        aligned(c->used) + sizeof(struct chain_link) + room <= POOL_BLOCK_BYTES) {
        return true;
    }
    char *block = pool_get(env->pool);
    if (block == NULL) {
        return false;
    }
    if (c->block != NULL) {
        c->last->block = c->block;
    }
    c->block = block;
    c->used = 0;
    return true;
}

static struct chain_link *
append_link(struct chain *c)
{
    uint32_t at = aligned(c->used);
    struct chain_link *link = (struct chain_link *)(void *)(c->block + at);
    *link = (struct chain_link){.p = c->block + at + sizeof *link};
    c->used = at + (uint32_t)sizeof *link;
    if (c->last != NULL) {
        c->last->next = link;
    } else {
        c->first = link;
    }
    c->last = link;
    return link;
}

char *
chain_reserve(struct chain *c, const struct chain_env *env, size_t n)
{
    must(n <= CHAIN_RESERVE_MAX);
    if (!is_growing(c) || c->used + n > POOL_BLOCK_BYTES) {
        if (!ensure_room(c, env, n)) {
            return NULL;
        }
        append_link(c);
    }
    return c->block + c->used;
}

char *
chain_window(struct chain *c, const struct chain_env *env, size_t n, size_t *room)
{
    char *to = chain_reserve(c, env, n);
    *room = to != NULL ? POOL_BLOCK_BYTES - c->used : 0;
    return to;
}

void
chain_commit(struct chain *c, size_t n)
{
    c->used += (uint32_t)n;
    must(c->used <= POOL_BLOCK_BYTES);
    c->last->len += n;
    c->bytes += n;
}

bool
chain_copy(struct chain *c, const struct chain_env *env, const void *p, size_t n)
{
    const char *from = p;
    while (n > 0) {
        size_t part = n < CHAIN_RESERVE_MAX ? n : CHAIN_RESERVE_MAX;
        char *to = chain_reserve(c, env, part);
        if (to == NULL) {
            return false;
        }
        memcpy(to, from, part);
        chain_commit(c, part);
        from += part;
        n -= part;
    }
    return true;
}

bool
chain_borrow(struct chain *c, const struct chain_env *env, const char *p, size_t n,
             void *owner)
{
    if (!ensure_room(c, env, 0)) {
        return false;
    }
    struct chain_link *link = append_link(c);
    link->p = p;
    link->len = n;
    link->owner = owner;
    c->bytes += n;
    return true;
}

unsigned
chain_iov(const struct chain *c, struct iovec *iov, unsigned max, size_t max_bytes)
{
    unsigned count = 0;
    for (const struct chain_link *l = c->first; l != NULL && count < max && max_bytes > 0;
         l = l->next) {
        if (l->len == 0) {
            continue;
        }
        size_t part = l->len < max_bytes ? l->len : max_bytes;
        iov[count++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)l->p, .iov_len = part};
        max_bytes -= part;
    }
    return count;
}

static void
drop_first(struct chain *c, const struct chain_env *env)
{
    struct chain_link *link = c->first;
    c->first = link->next;
    if (link->owner != NULL) {
        env->release(env->ctx, link->owner);
    }
    if (link->block != NULL) {
        pool_put(env->pool, link->block); /* the link itself lies in it */
    }
}

static void
release_tail(struct chain *c, const struct chain_env *env)
{
    if (c->block != NULL) {
        pool_put(env->pool, c->block);
    }
    *c = (struct chain){.first = NULL};
}

void
chain_consume(struct chain *c, const struct chain_env *env, size_t n)
{
    must(n <= c->bytes);
    c->bytes -= n;
    if (c->bytes == 0) {
        chain_clear(c, env);
        return;
    }
    while (n > 0) {
        struct chain_link *link = c->first;
        if (link->len > n) {
            link->p += n;
            link->len -= n;
            return;
        }
        n -= link->len;
        drop_first(c, env);
    }
}

void
chain_clear(struct chain *c, const struct chain_env *env)
{
    while (c->first != NULL) {
        drop_first(c, env);
    }
    release_tail(c, env);
}
