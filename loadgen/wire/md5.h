/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * MD5 (RFC 1321) of short texts, for rings of servers and nothing that has to be safe: no
 * library is there in every build, and those that may be allocate memory. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MD5_TEXT_MAX 311 /* bytes: five blocks less what ends them */

/* Of at most MD5_TEXT_MAX bytes: the sum as four little-endian numbers. */
void md5_sum(const char *text, size_t len, uint32_t sum[4]);
