/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Bytes as they stand in a URI: letters, digits and - . _ ~ as they are, the rest as %XX.
 * Pure; any thread.
 */
#pragma once

#include <stddef.h>

#define URI_ENCODED_MAX(n) (3 * (n))

/* Writes at most URI_ENCODED_MAX(n) characters, no terminator; returns how many. */
size_t uri_encode(char *dst, const char *src, size_t n);
