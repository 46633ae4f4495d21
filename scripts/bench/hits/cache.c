/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "scripts/bench/hits/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const struct policy *const policies[] = {
    &policy_lru,     &policy_slru, &policy_s3fifo, &policy_sieve,
    &policy_tinylfu, &policy_arc,  &policy_belady,
};

static bool
read_params(struct cache *c, const char *text)
{
    memcpy(c->params, c->policy->defaults, sizeof c->params);
    for (unsigned i = 0; *text != '\0'; i++) {
        char *end;
        if (i == CACHE_PARAMS) {
            return false;
        }
        c->params[i] = strtod(text + 1, &end);
        if (end == text + 1 || (*end != ',' && *end != '\0')) {
            return false;
        }
        text = end;
    }
    return true;
}

bool
cache_open(struct cache *c, const char *policy, uint32_t keys, uint64_t capacity,
           uint32_t items, const uint32_t *next)
{
    size_t len = strcspn(policy, ":");
    *c = (struct cache){.keys = keys, .capacity = capacity, .items = items, .next = next};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strlen(policies[i]->name) == len &&
            memcmp(policies[i]->name, policy, len) == 0) {
            c->policy = policies[i];
        }
    }
    if (c->policy == NULL || !read_params(c, policy + len)) {
        return false;
    }
    for (unsigned i = 0; i < CACHE_LISTS; i++) {
        c->lists[i].newest = c->lists[i].oldest = CACHE_NO_KEY;
    }
    c->nodes = alloc_zeroed(keys, sizeof *c->nodes);
    if (c->policy->start != NULL) {
        c->policy->start(c);
    }
    return true;
}

void
cache_close(struct cache *c)
{
    if (c->policy->stop != NULL) {
        c->policy->stop(c);
    }
    free(c->nodes);
    free(c->state);
    c->nodes = NULL;
    c->state = NULL;
}

static void
count_bytes(struct cache *c, const struct node *n, int64_t bytes)
{
    c->lists[n->list].bytes += (uint64_t)bytes;
    if ((c->policy->resident >> n->list & 1) != 0) {
        c->used += (uint64_t)bytes;
    }
}

void
cache_take(struct cache *c, uint32_t key)
{
    struct node *n = &c->nodes[key];
    struct list *l = &c->lists[n->list];
    if (n->list == CACHE_NOWHERE) {
        return;
    }
    *(n->newer == CACHE_NO_KEY ? &l->newest : &c->nodes[n->newer].older) = n->older;
    *(n->older == CACHE_NO_KEY ? &l->oldest : &c->nodes[n->older].newer) = n->newer;
    l->count--;
    count_bytes(c, n, -(int64_t)n->bytes);
    n->list = CACHE_NOWHERE;
}

void
cache_push(struct cache *c, unsigned list, uint32_t key)
{
    struct node *n = &c->nodes[key];
    struct list *l = &c->lists[list];
    cache_take(c, key);
    n->list = (uint8_t)list;
    n->newer = CACHE_NO_KEY;
    n->older = l->newest;
    *(l->newest == CACHE_NO_KEY ? &l->oldest : &c->nodes[l->newest].newer) = key;
    l->newest = key;
    l->count++;
    count_bytes(c, n, n->bytes);
}

static void
make_room(struct cache *c)
{
    while (c->used > c->capacity) {
        c->policy->evict(c);
    }
}

static void
resize(struct cache *c, uint32_t key, uint32_t bytes)
{
    struct node *n = &c->nodes[key];
    if (n->list != CACHE_NOWHERE) {
        count_bytes(c, n, (int64_t)bytes - (int64_t)n->bytes);
    }
    n->bytes = bytes;
}

void
cache_set(struct cache *c, uint32_t key, uint32_t bytes)
{
    if (bytes > c->capacity) {
        cache_delete(c, key);
        return;
    }
    resize(c, key, bytes);
    (cache_has(c, key) ? c->policy->use : c->policy->insert)(c, key);
    make_room(c);
}

bool
cache_get(struct cache *c, uint32_t key, uint32_t bytes)
{
    if (!cache_has(c, key)) {
        cache_set(c, key, bytes);
        return false;
    }
    c->policy->use(c, key);
    return true;
}

void
cache_delete(struct cache *c, uint32_t key)
{
    if (cache_has(c, key)) {
        if (c->policy->leave != NULL) {
            c->policy->leave(c, key);
        }
        if (cache_has(c, key)) {
            cache_take(c, key);
        }
    }
}
