/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Base64 of RFC 4648: the standard alphabet, padded. Pure; any thread.
 */
#pragma once

#include "base/must.h"

/* Lengths for arrays. */
#define BASE64_ENCODED(n) (((n) + 2) / 3 * 4)
#define BASE64_DECODED_MAX(n) ((n) / 4 * 3)

/* Writes BASE64_ENCODED(n) characters, no terminator; returns how many. */
size_t base64_encode(char *dst, const char *src, size_t n);

/* Writes at most BASE64_DECODED_MAX(n) bytes and sets *len. False when src is not whole
 * groups of four with the padding at their end only; dst may have been written to then. Bits
 * that the padding leaves over are ignored. */
must_check bool base64_decode(char *dst, const char *src, size_t n, size_t *len);
