/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the fuzz targets share. A target is one function on bytes; it is linked either with
 * libFuzzer or with replay.c, which runs it on the files of its corpus. It reports a finding
 * by must() or by a sanitizer.
 */
#pragma once

#include "base/must.h"
#include "base/rng.h"
#include "t/unit/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Exactly size bytes, so that the sanitizer sees a read or write just beyond. */
static inline char *
exact_copy(const void *p, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    must(copy != NULL);
    if (size > 0) {
        memcpy(copy, p, size);
    }
    return size > 0 ? copy : (free(copy), NULL);
}

/* How the bytes are cut: all at once, or in pieces of up to 1, 2, 4, ... bytes. The style is
 * an input byte, so that the fuzzer chooses; '0' and '1' (all that a readable corpus needs)
 * cut into single bytes. */
struct cutter {
    struct rng rng;
    uint64_t piece_max; /* 0: all at once */
};

static inline void
cutter_init(struct cutter *c, uint8_t style, size_t size)
{
    rng_init(&c->rng, style, size);
    c->piece_max = UINT64_C(1) << (style >> 4) % 4 * 4;
    if (style == '0' || style == '1') {
        c->piece_max = 1;
    }
}

static inline size_t
cutter_next(struct cutter *c, size_t left)
{
    if (c->piece_max == 0) {
        return left;
    }
    size_t n = 1 + (size_t)rng_below(&c->rng, c->piece_max);
    return n < left ? n : left;
}
