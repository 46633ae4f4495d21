/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * In place of deflate.c where zlib is not linked.
 */
#include "loadgen/report/deflate.h"

bool (*const deflate_bytes)(const uint8_t *src, size_t n, uint8_t *dst,
                            size_t *dst_len) = NULL;
