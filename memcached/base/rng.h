/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Seeded random numbers: xoshiro256** seeded through splitmix64 (Blackman and Vigna,
 * "Scrambled linear pseudorandom number generators", 2018). One state per owner; the
 * owner's thread only. Not for secrets.
 */
#pragma once

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* The same (seed, stream) gives the same numbers on every machine; different streams of a
 * seed are independent. */
void rng_init(struct rng *r, uint64_t seed, uint64_t stream);
uint64_t rng_u64(struct rng *r);
/* Uniform on [0, bound) without modulo bias; bound > 0. */
uint64_t rng_below(struct rng *r, uint64_t bound);
/* Uniform on the open interval (0, 1): never 0, never 1. */
double rng_unit(struct rng *r);
/* A stateless 64-bit mix of (seed, key, purpose). */
uint64_t rng_mix(uint64_t seed, uint64_t key, uint64_t purpose);
/* A seed from the kernel. */
uint64_t rng_seed(void);
