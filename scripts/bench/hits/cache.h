/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Simulated caches of scripts/bench-hits: which keys of a trace a policy would hold in so
 * many bytes, without slab classes or any other waste. A key is a number; what a policy
 * knows of it is its node, which lies in one of the policy's lists, or in none. One
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"

#define CACHE_LISTS 5
#define CACHE_NOWHERE 0
#define CACHE_NO_KEY UINT32_MAX
#define CACHE_NEVER UINT32_MAX
#define CACHE_PARAMS 4

struct node {
    uint32_t newer, older; /* keys of its list */
    uint32_t bytes;
    uint8_t list; /* CACHE_NOWHERE: none */
    uint8_t uses; /* what the policy counts */
};

struct list {
    uint32_t newest, oldest;
    uint32_t count;
    uint64_t bytes;
};

struct cache {
    const struct policy *policy;
    double params[CACHE_PARAMS];
    struct node *nodes;
    uint32_t keys;
    uint32_t items; /* that may fit, about: for tables */
    uint64_t capacity, used;
    struct list lists[CACHE_LISTS]; /* [CACHE_NOWHERE] stays empty */
    const uint32_t *next; /* of each request, the next one of its key; Belady's */
    uint32_t now;         /* number of the request */
    void *state;          /* the policy's own */
};

struct policy {
    const char *name;
    unsigned resident;  /* a bit for each list whose items are in memory */
    const char *params; /* what they are, for people */
    double defaults[CACHE_PARAMS];
    void (*start)(struct cache *c); /* NULL: nothing to do */
    void (*stop)(struct cache *c);  /* NULL: state is one piece of memory, or none */
    void (*use)(struct cache *c,
                uint32_t key); /* a resident one is read or overwritten */
    void (*insert)(struct cache *c, uint32_t key);
    void (*evict)(struct cache *c); /* while used > capacity: a step to less */
    void (*leave)(struct cache *c, uint32_t key); /* it is deleted; NULL: nothing to do */
};

extern const struct policy policy_lru, policy_slru, policy_s3fifo, policy_sieve,
    policy_tinylfu, policy_arc, policy_belady;

/* "NAME" or "NAME:PARAMETER,...". False: there is no such policy, or parameter.
 * `items` is about how many may fit. */
must_check bool cache_open(struct cache *c, const char *policy, uint32_t keys,
                           uint64_t capacity, uint32_t items, const uint32_t *next);
void cache_close(struct cache *c);

static inline bool
cache_has(const struct cache *c, uint32_t key)
{
    return (c->policy->resident >> c->nodes[key].list & 1) != 0;
}

/* A get, and a set of so many bytes when it misses. */
bool cache_get(struct cache *c, uint32_t key, uint32_t bytes);
void cache_set(struct cache *c, uint32_t key, uint32_t bytes);
void cache_delete(struct cache *c, uint32_t key);

/* ---- for policies ----------------------------------------------------------------- */

/* As the newest of a list, from wherever it is. */
void cache_push(struct cache *c, unsigned list, uint32_t key);
/* Out of its list. */
void cache_take(struct cache *c, uint32_t key);

static inline uint32_t
cache_oldest(const struct cache *c, unsigned list)
{
    return c->lists[list].oldest;
}
