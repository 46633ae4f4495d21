/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The requests that scripts/bench-hits plays, to servers and to simulated caches: made
 * from laws with a seed, or read from a file. The same name, scale and seed give the same
 * requests.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/must.h"

/* Bytes of an item beside key and value: header, CAS, CR LF. */
#define RECORDING_ITEM_OVERHEAD 58
#define RECORDING_KEY_MAX 250
/* The number of a key, and a letter before it. */
#define RECORDING_KEY_MIN 10
/* What fits into a request. */
#define RECORDING_VALUE_BITS 0xffffff
#define RECORDING_ERR_MAX 640

enum recording_verb {
    RECORDING_GET, /* and a set, if it misses */
    RECORDING_SET,
    RECORDING_DELETE,
};

struct request {
    uint32_t key;
    uint32_t value_len : 24; /* at least 1 */
    uint32_t verb : 4;
    uint32_t is_aside : 4; /* of a neighbour: its hits are not counted */
};

struct recording {
    struct request *requests;
    uint32_t count;
    uint32_t counted_from; /* what comes before warms up */
    uint8_t *key_lens;
    uint32_t keys;
    uint32_t records;   /* of them, that are asked for again, but for what is special */
    uint64_t footprint; /* bytes of their items */
    double share;       /* of it, that a cache is to have */
};

/* NULL, or a sentence (err). `name` is one of recording_list, or "file:FORMAT:PATH" as
 * mcload's --trace-format has them. `scale`: of keys and requests, 0 to 1. */
must_check const char *recording_open(struct recording *r, const char *name, double scale,
                                      uint64_t seed, char err[RECORDING_ERR_MAX]);
void recording_close(struct recording *r);
/* Names and what they are, a line each. */
void recording_list(FILE *out);

/* For recording_open. */
must_check const char *recording_read(struct recording *r, const char *format_and_path,
                                      char err[RECORDING_ERR_MAX]);

static inline uint32_t
recording_bytes(const struct recording *r, const struct request *q)
{
    return RECORDING_ITEM_OVERHEAD + (uint32_t)r->key_lens[q->key] + q->value_len;
}

/* Of each request, the number of the next get of its key, as long as neither set nor
 * delete is before it; UINT32_MAX: none. To be freed. */
uint32_t *recording_next_gets(const struct recording *r);
/* Writes the key's text, RECORDING_KEY_MAX bytes at most; returns its length. */
size_t recording_put_key(const struct recording *r, const struct request *q, char *dst);
