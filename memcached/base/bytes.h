/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Runs of bytes as short as most keys are, for which libc's functions take as long to be called as
 * to do their work. Two words that overlap at the end take the place of loops for what is left over.
 * Pure; any thread.
 */
#pragma once

#include <endian.h>

#include "base/must.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* bytes_find_below reads up to so many, less one, behind what it finds. */
#define BYTES_SLACK 16

static inline uint64_t
bytes_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline uint32_t
bytes_half(const char *p)
{
    uint32_t half;
    memcpy(&half, p, sizeof half);
    return half;
}

/* 0: two words are the same, at i and at j. */
static inline uint64_t
bytes_unlike(const char *a, const char *b, size_t i, size_t j)
{
    return (bytes_word(a + i) ^ bytes_word(b + i)) |
           (bytes_word(a + j) ^ bytes_word(b + j));
}

static inline bool
bytes_equal(const char *a, const char *b, size_t n)
{
    if (likely(n >= 16)) {
        uint64_t unlike = bytes_unlike(a, b, 0, 8) | bytes_unlike(a, b, n - 16, n - 8);
        for (size_t i = 16; i + 16 < n; i += 16) {
            unlike |= bytes_unlike(a, b, i, i + 8);
        }
        return unlike == 0;
    }
    if (n >= 8) {
        return bytes_unlike(a, b, 0, n - 8) == 0;
    }
    if (n >= 4) {
        return ((bytes_half(a) ^ bytes_half(b)) |
                (bytes_half(a + n - 4) ^ bytes_half(b + n - 4))) == 0;
    }
    return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* As memcpy. */
static inline void
bytes_copy(char *to, const char *from, size_t n)
{
    if (n < 16) {
        memcpy(to, from, n);
        return;
    }
    for (size_t i = 16; i < n; i += 16) {
        memcpy(to + i - 16, from + i - 16, 16);
    }
    memcpy(to + n - 16, from + n - 16, 16);
}

/* The first byte that is lower than `limit`, of 0x80 at most. There is one. */
static inline const char *
bytes_find_below(const char *p, uint8_t limit)
{
#ifdef __SSE2__
    const __m128i most = _mm_set1_epi8((char)(limit - 1));
    for (;; p += BYTES_SLACK) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        unsigned low =
            (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, most), bytes));
        if (low != 0) {
            return p + __builtin_ctz(low);
        }
    }
#else
    /* Subtracting leaves the high bit of each byte that is lower, and of none before the first. */
    const uint64_t each = UINT64_C(0x0101010101010101);
    for (;; p += sizeof each) {
        uint64_t bytes = le64toh(bytes_word(p));
        uint64_t low = (bytes - each * limit) & ~bytes & each * 0x80;
        if (low != 0) {
            return p + __builtin_ctzll(low) / 8;
        }
    }
#endif
}
