/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/keyset.h"

#include "base/alloc.h"

#define SIZE_FIRST 1024

void
keyset_init(struct keyset *s, uint64_t most)
{
    *s = (struct keyset){.most = most};
}

void
keyset_fini(struct keyset *s)
{
    free(s->places);
    *s = (struct keyset){.places = NULL};
}

/* Where it is, or is to be. */
static uint64_t *
place_of(const struct keyset *s, uint64_t hash)
{
    uint64_t at = hash & (s->size - 1);
    while (s->places[at] != 0 && s->places[at] != hash) {
        at = (at + 1) & (s->size - 1);
    }
    return &s->places[at];
}

static void
grow(struct keyset *s)
{
    struct keyset larger = *s;
    larger.size = s->size > 0 ? s->size * 2 : SIZE_FIRST;
    larger.places = alloc_zeroed(larger.size, sizeof *larger.places);
    for (uint64_t i = 0; i < s->size; i++) {
        if (s->places[i] != 0) {
            *place_of(&larger, s->places[i]) = s->places[i];
        }
    }
    free(s->places);
    *s = larger;
}

enum keyset_met
keyset_add(struct keyset *s, uint64_t hash)
{
    hash += hash == 0 ? 1 : 0;
    if (s->size > 0 && *place_of(s, hash) == hash) {
        return KEYSET_KNOWN;
    }
    if (s->count == s->most) {
        return KEYSET_FULL;
    }
    if (s->count >= s->size / 4 * 3) {
        grow(s);
    }
    *place_of(s, hash) = hash;
    s->count++;
    return KEYSET_NEW;
}
