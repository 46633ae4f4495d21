/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Seeded random numbers: xoshiro256** seeded through splitmix64 (Blackman and Vigna,
 * "Scrambled linear pseudorandom number generators", 2018). One state per owner; the
 * owner's thread only. Not for secrets.
 */
#pragma once

#include "base/must.h"

struct rng {
    uint64_t s[4];
};

/* The same (seed, stream) gives the same numbers on every machine; different streams of a
 * seed are independent. */
void rng_init(struct rng *r, uint64_t seed, uint64_t stream);
static inline uint64_t
rng_rotate_left(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k));
}

static inline uint64_t
rng_u64(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rng_rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotate_left(s[3], 45);
    return result;
}

/* Uniform on [0, bound) without modulo bias; bound > 0. Multiply and take the high word; the few low
 * words that would favour some results are drawn again (D. Lemire, "Fast random integer generation in
 * an interval", 2019). */
static inline uint64_t
rng_below(struct rng *r, uint64_t bound)
{
    must(bound > 0);
    unsigned __int128 product = (unsigned __int128)rng_u64(r) * bound;
    if (unlikely((uint64_t)product < bound)) {
        uint64_t unfair = -bound % bound;
        while ((uint64_t)product < unfair) {
            product = (unsigned __int128)rng_u64(r) * bound;
        }
    }
    return (uint64_t)(product >> 64);
}

/* Uniform on the open interval (0, 1): never 0, never 1. */
double rng_unit(struct rng *r);
/* A stateless 64-bit mix of (seed, key, purpose). */
uint64_t rng_mix(uint64_t seed, uint64_t key, uint64_t purpose);
/* A seed from the kernel. */
uint64_t rng_seed(void);
