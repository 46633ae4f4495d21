/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * W-TinyLFU (Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission
 * policy", TOS'17): a small LRU window, and a segmented LRU that takes what leaves the
 * window only in place of what was used less often of late, by a count-min sketch whose
 * counts are halved now and then.
 */
#include "scripts/bench/hits/cache.h"

#include "base/alloc.h"
#include "base/rng.h"

enum { WINDOW = 1, PROBATION, PROTECTED };
enum { SHARE, PROTECTED_SHARE }; /* parameters: of all; of what is not the window's */
enum { ROWS = 4, COUNT_MAX = 15, SAMPLES_AN_ITEM = 10 };

struct sketch {
    uint64_t samples, period;
    uint32_t mask;
    uint8_t counts[]; /* ROWS times mask + 1 */
};

static void
start(struct cache *c)
{
    uint32_t width = 1;
    while (width < c->items) {
        width *= 2;
    }
    struct sketch *s = c->state = alloc_zeroed(1, sizeof *s + (size_t)ROWS * width);
    s->mask = width - 1;
    s->period = (uint64_t)SAMPLES_AN_ITEM * (c->items > 0 ? c->items : 1);
}

static uint8_t *
count_in(struct sketch *s, unsigned row, uint32_t key)
{
    uint32_t place = (uint32_t)rng_mix(0, key, row) & s->mask;
    return &s->counts[(size_t)row * (s->mask + 1) + place];
}

static unsigned
uses_of(struct cache *c, uint32_t key)
{
    unsigned least = COUNT_MAX;
    for (unsigned row = 0; row < ROWS; row++) {
        unsigned count = *count_in(c->state, row, key);
        least = count < least ? count : least;
    }
    return least;
}

static void
count(struct cache *c, uint32_t key)
{
    struct sketch *s = c->state;
    for (unsigned row = 0; row < ROWS; row++) {
        uint8_t *n = count_in(s, row, key);
        if (*n < COUNT_MAX) {
            (*n)++;
        }
    }
    if (++s->samples == s->period) {
        for (size_t i = 0; i < (size_t)ROWS * (s->mask + 1); i++) {
            s->counts[i] /= 2;
        }
        s->samples /= 2;
    }
}

static bool
is_over(const struct cache *c, unsigned list, double share)
{
    return (double)c->lists[list].bytes > share * (double)c->capacity;
}

static void
use(struct cache *c, uint32_t key)
{
    count(c, key);
    cache_push(c, c->nodes[key].list == WINDOW ? WINDOW : PROTECTED, key);
    while (is_over(c, PROTECTED, (1 - c->params[SHARE]) * c->params[PROTECTED_SHARE])) {
        cache_push(c, PROBATION, cache_oldest(c, PROTECTED));
    }
}

/* While there is room, what the window has no place for is not asked how often it was
 * used. */
static void
admit(struct cache *c)
{
    while (c->used <= c->capacity && is_over(c, WINDOW, c->params[SHARE])) {
        cache_push(c, PROBATION, cache_oldest(c, WINDOW));
    }
}

static void
insert(struct cache *c, uint32_t key)
{
    count(c, key);
    cache_push(c, WINDOW, key);
    admit(c);
}

static void
evict(struct cache *c)
{
    unsigned list = c->lists[PROBATION].count > 0 ? PROBATION : PROTECTED;
    uint32_t victim = cache_oldest(c, list), candidate = cache_oldest(c, WINDOW);
    if (victim == CACHE_NO_KEY || (is_over(c, WINDOW, c->params[SHARE]) &&
                                   uses_of(c, candidate) <= uses_of(c, victim))) {
        victim = candidate;
    }
    cache_take(c, victim);
    admit(c);
}

const struct policy policy_tinylfu = {
    .name = "tinylfu",
    .resident = 1 << WINDOW | 1 << PROBATION | 1 << PROTECTED,
    .params = "share of the window; of the protected segment in the rest",
    .defaults = {[SHARE] = 0.01, [PROTECTED_SHARE] = 0.8},
    .start = start,
    .use = use,
    .insert = insert,
    .evict = evict,
};
