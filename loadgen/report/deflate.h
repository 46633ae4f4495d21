/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * zlib's format (RFC 1950), where zlib is linked. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* At most DEFLATE_MAX(n) bytes come of n. */
#define DEFLATE_MAX(n) ((n) + (n) / 1000 + 64)

/* Writes what n bytes become, *dst_len of them; dst has room for DEFLATE_MAX(n). False when
 * memory is short. NULL: this build cannot. */
extern bool (*const deflate_bytes)(const uint8_t *src, size_t n, uint8_t *dst,
                                   size_t *dst_len);
