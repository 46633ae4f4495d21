/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * In place of deflate.c where zlib is not linked.
 */
#include "loadgen/report/deflate.h"

bool
deflate_is_built(void)
{
    return false;
}

bool
deflate_bytes(const uint8_t *src, size_t n, uint8_t *dst, size_t *dst_len)
{
    (void)src;
    (void)n;
    (void)dst;
    *dst_len = 0;
    return false;
}
