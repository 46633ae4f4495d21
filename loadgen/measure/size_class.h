/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Replies by the bytes of their values, in powers of four: a large one holds up the small ones
 * behind it, which the latencies of all together do not show. Pure.
 */
#pragma once

#include <stdint.h>

#define SIZE_CLASSES 8
#define SIZE_CLASS_FIRST_BITS 6 /* the first are those up to 64 bytes */

static inline unsigned
size_class_of(uint64_t bytes)
{
    uint64_t above = (bytes - 1) >> SIZE_CLASS_FIRST_BITS;
    if (bytes <= UINT64_C(1) << SIZE_CLASS_FIRST_BITS) {
        return 0;
    }
    unsigned at = (63 - (unsigned)__builtin_clzll(above)) / 2 + 1;
    return at < SIZE_CLASSES ? at : SIZE_CLASSES - 1;
}

/* The largest of a class; UINT64_MAX of the last one. */
static inline uint64_t
size_class_most(unsigned i)
{
    return i < SIZE_CLASSES - 1 ? UINT64_C(1) << (SIZE_CLASS_FIRST_BITS + 2 * i)
                                : UINT64_MAX;
}
