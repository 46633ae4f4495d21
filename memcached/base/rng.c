/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/rng.h"

#include <sys/random.h>

#include "base/must.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio, odd */

/* The output function of splitmix64: a bijection in which every input bit reaches every
 * output bit. */
static uint64_t
scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t
splitmix_next(uint64_t *state)
{
    *state += GOLDEN;
    return scramble(*state);
}

void
rng_init(struct rng *r, uint64_t seed, uint64_t stream)
{
    /* Scrambling the stream number first keeps (seed, stream + 1) from being the sequence
     * of (seed, stream) moved by one. */
    uint64_t state = rng_mix(seed, stream, 0);
    for (unsigned i = 0; i < 4; i++) {
        r->s[i] = splitmix_next(&state);
    }
    if ((r->s[0] | r->s[1] | r->s[2] | r->s[3]) == 0) {
        r->s[0] = GOLDEN; /* the one state that never leaves itself */
    }
}

double
rng_unit(struct rng *r)
{
    /* 52 bits and a half: with 53 the largest value would round to 1. */
    return ((double)(rng_u64(r) >> 12) + 0.5) * 0x1p-52;
}

uint64_t
rng_mix(uint64_t seed, uint64_t key, uint64_t purpose)
{
    uint64_t h = scramble(seed + GOLDEN);
    h = scramble(h ^ (key + GOLDEN));
    return scramble(h ^ (purpose * GOLDEN + 1));
}

uint64_t
rng_seed(void)
{
    uint64_t seed = 0;
    char *at = (char *)&seed;
    size_t left = sizeof seed;
    while (left > 0) {
        ssize_t got = getrandom(at, left, 0);
        must(got > 0); /* requests up to 256 bytes neither fail nor are interrupted */
        at += got;
        left -= (size_t)got;
    }
    return seed;
}
