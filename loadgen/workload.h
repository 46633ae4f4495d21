/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What is asked for: the key space, the sizes of keys and values and the mix of requests.
 * A key is a number below `records`; its text and the sizes of both are functions of that
 * number alone, so that any number of clients agree without talking. Constant after
 * workload_init; any thread may draw, each with its own rng.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "base/rng.h"
#include "loadgen/dist.h"
#include "loadgen/popularity.h"

#define WORKLOAD_KEY_MAX 250
#define WORKLOAD_PREFIX_MAX 200
#define WORKLOAD_GETCOUNT_MAX 1000
/* Sizes drawn from a law without upper end stop here; a fixed size may be larger. */
#define WORKLOAD_VALUE_CAP 1000000
#define WORKLOAD_VALUE_MAX (UINT64_C(1) << 30)

enum workload_verb {
    WORKLOAD_GET,
    WORKLOAD_SET,
};

struct workload_conf {
    uint64_t records;
    double update; /* share of sets, 0 to 1 */
    unsigned getcount;
    const char *key_prefix;
    struct dist key_size;
    struct dist value_size;
    struct popularity popularity;
};

struct workload {
    struct workload_conf conf;
    size_t prefix_len;
    unsigned digits; /* of the largest key number */
    size_t key_min;  /* prefix and digits */
    uint64_t value_cap;
};

/* NULL, or a sentence saying what is wrong. key_prefix must live as long as w. */
must_check const char *workload_init(struct workload *w,
                                     const struct workload_conf *conf);

enum workload_verb workload_verb(const struct workload *w, struct rng *rng);

static inline uint64_t
workload_key(const struct workload *w, struct rng *rng)
{
    return popularity_key(&w->conf.popularity, rng);
}

/* Writes the key's text, at most WORKLOAD_KEY_MAX bytes; returns its length. */
size_t workload_put_key(const struct workload *w, uint64_t key, char *dst);
/* Whether text, as a reply has it, is the key's. */
bool workload_is_key(const struct workload *w, uint64_t key, const char *text,
                     size_t len);
size_t workload_value_len(const struct workload *w, uint64_t key);

size_t workload_key_len_max(const struct workload *w);
size_t workload_value_len_max(const struct workload *w);
