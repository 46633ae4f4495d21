/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/deflate.h"

#include <zlib.h>

bool
deflate_is_built(void)
{
    return true;
}

bool
deflate_bytes(const uint8_t *src, size_t n, uint8_t *dst, size_t *dst_len)
{
    uLongf len = DEFLATE_MAX(n);
    int rc = compress(dst, &len, src, n);
    *dst_len = len;
    return rc == Z_OK;
}
