/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Which of n keys is asked for. Laws are laws of ranks, the most popular first; ranks are
 * mapped to keys by a fixed bijection, so that hot keys lie apart and every client that uses
 * the same n agrees on which they are. No law needs a table of keys. Pure; the randomness is
 * an argument.
 */
#pragma once

#include "base/must.h"
#include "base/rng.h"

#define POPULARITY_KEYS_MAX (UINT64_C(1) << 40)
#define POPULARITY_POINTS_MAX 64

enum popularity_law {
    POPULARITY_UNIFORM,
    POPULARITY_ZIPF,
    POPULARITY_LATEST, /* Zipf's law, the newest key is the most popular */
    POPULARITY_HOTSET, /* a share of the keys gets a share of the requests */
    POPULARITY_NORMAL, /* ranks fall off as the upper half of a normal law */
    POPULARITY_POINTS, /* shares of the requests that the first shares of the keys get */
    POPULARITY_SEQ,    /* one after the other: the caller counts */
};

/* Constants of the rejection-inversion sampler of ranks 1 to n. */
struct zipf {
    double exponent;
    uint64_t n;
    double h_first, h_last, shortcut;
};

struct popularity_point {
    double keys, requests; /* shares of both, of all that are at least as popular */
};

struct popularity {
    enum popularity_law law;
    bool is_ordered; /* rank 1 is key 0, rank 2 is key 1 and so on */
    uint64_t keys;
    struct zipf zipf; /* ZIPF, LATEST; POINTS: of the first part, if it has an exponent */
    double sd;        /* NORMAL: of ranks, as a share of the keys */
    struct popularity_point points[POPULARITY_POINTS_MAX]; /* HOTSET: two of them */
    unsigned points_len;
    unsigned half_bits; /* of the bijection's domain, 2^(2 * half_bits) >= keys */
};

/* "uniform", "zipf:EXPONENT", "zipf-ordered:EXPONENT", "latest[:EXPONENT]",
 * "hotset:KEYS:REQUESTS", "normal[:SD]", "seq", "etc", "cdf:FILE" (lines of a share of keys and
 * the share of requests that they get). NULL, or a sentence saying what is wrong. */
must_check const char *popularity_parse(void *popularity, const char *text);
/* Call once the number of keys (> 0) is known, before drawing. */
void popularity_init(struct popularity *p, uint64_t keys);

/* A rank, 1 .. keys, the most popular first; of SEQ a uniform one. */
uint64_t popularity_rank(const struct popularity *p, struct rng *rng);
/* The key of a rank: of LATEST the one as old as the rank. */
uint64_t popularity_key_of(const struct popularity *p, uint64_t rank);
/* The bijection from rank - 1 to key. */
uint64_t popularity_scatter(const struct popularity *p, uint64_t rank0);
