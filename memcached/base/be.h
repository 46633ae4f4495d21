/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Numbers of up to eight bytes in network byte order, at any address. Pure.
 */
#pragma once

#include <stdint.h>

static inline uint64_t
be_get(const void *p, unsigned bytes)
{
    const unsigned char *from = p;
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | from[i];
    }
    return value;
}

static inline void
be_put(void *p, uint64_t value, unsigned bytes)
{
    unsigned char *to = p;
    for (unsigned i = bytes; i-- > 0; value >>= 8) {
        to[i] = (unsigned char)value;
    }
}
