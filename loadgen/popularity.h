/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which of n keys is asked for: uniform, or by Zipf's law with any exponent >= 0. Ranks are
 * mapped to keys by a fixed bijection, so that hot keys lie apart and every client that
 * uses the same n agrees on which they are. Pure; the randomness is an argument.
 */
#pragma once

#include <stdint.h>

#include "base/must.h"
#include "base/rng.h"

#define ZIPF_EXPONENT_MAX 20

enum popularity_law {
    POPULARITY_UNIFORM,
    POPULARITY_ZIPF,
};

struct popularity {
    enum popularity_law law;
    double exponent;
    uint64_t keys;
    /* Constants of the rejection-inversion sampler. */
    double h_first, h_last, shortcut;
    unsigned half_bits; /* of the bijection's domain, 2^(2 * half_bits) >= keys */
};

/* "uniform" or "zipf:EXPONENT". NULL, or a sentence saying what is wrong. */
must_check const char *popularity_parse(struct popularity *p, const char *text);
/* Call once the number of keys (> 0) is known, before drawing. */
void popularity_init(struct popularity *p, uint64_t keys);

/* A rank, 1 .. keys, the most popular first. */
uint64_t popularity_rank(const struct popularity *p, struct rng *rng);
/* A key, 0 .. keys - 1. */
uint64_t popularity_key(const struct popularity *p, struct rng *rng);
/* The bijection from rank - 1 to key. */
uint64_t popularity_scatter(const struct popularity *p, uint64_t rank0);
