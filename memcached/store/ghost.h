/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which items left the store not long ago: 16 bits of the hash of each, 2 bytes of memory, for
 * about as many as there are items. Private to store/.
 *
 * Four lie in a word, the newest lowest: a fifth pushes out the oldest. When the number of words
 * in use changes, what lies in them is at other places than it would be looked for, and grows old.
 *
 * Any thread, no lock. Each word is read and written as a whole, relaxed: of two threads that write
 * one at the same moment, one may be in vain. It is a hint.
 */
#pragma once

#include <stdatomic.h>

#include "store/mem.h"

#define GHOST_BITS 16u
#define GHOST_MASK 0xffffu
#define GHOSTS_PER_WORD 4u
#define GHOST_WORDS_LEAST 16u

struct ghost {
    _Atomic uint64_t *words; /* constant once `used` is not 0 */
    uint64_t room;           /* words */
    _Atomic uint64_t used;   /* release, acquire: publishes `words`; 0: there are none */
};

/* Makes room for so many. Without memory there will be none. */
static inline void
ghost_open(struct ghost *g, struct mem *mem, uint64_t most)
{
    uint64_t room = most / GHOSTS_PER_WORD;

    if (g->words == NULL && room >= GHOST_WORDS_LEAST) {
        g->words = mem_map(mem, room * sizeof(*g->words));
        g->room = room;
    }
    if (g->words != NULL && atomic_load_explicit(&g->used, memory_order_relaxed) == 0) {
        atomic_store_explicit(&g->used, GHOST_WORDS_LEAST, memory_order_release);
    }
}

static inline void
ghost_close(struct ghost *g)
{
    mem_unmap(g->words, g->room * sizeof(*g->words));
}

/* There are so many items now. Not for each one: ghosts are lost. */
static inline void
ghost_fit(struct ghost *g, uint64_t items)
{
    uint64_t used = atomic_load_explicit(&g->used, memory_order_relaxed);
    uint64_t fit = items / GHOSTS_PER_WORD;

    fit = fit > g->room ? g->room : fit;
    fit = fit < GHOST_WORDS_LEAST ? GHOST_WORDS_LEAST : fit;
    if (used != 0 && (fit > used + used / 4 || fit < used - used / 4)) {
        atomic_store_explicit(&g->used, fit, memory_order_release);
    }
}

/* NULL: there are none. */
static inline _Atomic uint64_t *
ghost_word(const struct ghost *g, uint64_t hash)
{
    uint64_t used = atomic_load_explicit(&g->used, memory_order_acquire);

    return used == 0 ? NULL : &g->words[(hash >> 32) * used >> 32];
}

/* Never 0, which is an empty place. The word comes from the other half of the hash. */
static inline uint64_t
ghost_of(uint64_t hash)
{
    return (hash & GHOST_MASK) != 0 ? hash & GHOST_MASK : 1;
}

static inline void
ghost_add(struct ghost *g, uint64_t hash)
{
    _Atomic uint64_t *word = ghost_word(g, hash);

    if (word != NULL) {
        uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

        atomic_store_explicit(word, seen << GHOST_BITS | ghost_of(hash),
                              memory_order_relaxed);
    }
}

/* Whether one of the four is this ghost. */
static inline bool
ghost_is_among(uint64_t word, uint64_t ghost)
{
    const uint64_t each = UINT64_C(0x0001000100010001);
    uint64_t differs = word ^ ghost * each; /* a place is 0 where they are the same */

    return ((differs - each) & ~differs & each << (GHOST_BITS - 1)) != 0;
}

/* Whether it is one; it no longer is. */
static inline bool
ghost_take(struct ghost *g, uint64_t hash)
{
    _Atomic uint64_t *word = ghost_word(g, hash);

    if (word == NULL) {
        return false;
    }
    uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
    if (!ghost_is_among(seen, ghost_of(hash))) {
        return false;
    }
    for (unsigned at = 0; at < GHOSTS_PER_WORD; at++) {
        uint64_t mask = (uint64_t)GHOST_MASK << at * GHOST_BITS;

        if ((seen & mask) == ghost_of(hash) << at * GHOST_BITS) {
            atomic_store_explicit(word, seen & ~mask, memory_order_relaxed);
            return true;
        }
    }
    return false;
}
