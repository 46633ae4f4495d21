/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The counts of a histogram in few bytes, as HdrHistogram's second encoding writes them: from
 * the lowest bucket on one number each, a run of empty ones as minus its length; numbers in
 * zigzag order (0 -1 1 -2 2 ...), seven bits a byte from the lowest on, the ninth byte eight.
 * Our buckets are those of a histogram with PACKED_DIGITS significant digits and unit 1.
 * Pure; one thread.
 */
#pragma once

#include <stddef.h>

#include "base/hist.h"

#define PACKED_DIGITS 3
#define PACKED_SUB_BITS 10 /* 2 * 10^3, made a power of two, in each half of it */

struct packed {
    uint8_t *bytes; /* owned */
    size_t len;
};

/* Of a histogram with PACKED_SUB_BITS. */
void packed_make(struct packed *p, const struct hist *h);
void packed_fini(struct packed *p);
