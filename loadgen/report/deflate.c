/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/deflate.h"

#include <zlib.h>

static bool
deflate_all(const uint8_t *src, size_t n, uint8_t *dst, size_t *dst_len)
{
    uLongf len = DEFLATE_MAX(n);
    int rc = compress(dst, &len, src, n);
    *dst_len = len;
    return rc == Z_OK;
}

bool (*const deflate_bytes)(const uint8_t *src, size_t n, uint8_t *dst,
                            size_t *dst_len) = deflate_all;
