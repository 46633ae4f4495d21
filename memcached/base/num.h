/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Decimal numbers to and from (pointer, length). Nothing here needs a terminator, wraps,
 * and but for the loose ones a word is a number as a whole or it is not. Pure; any thread.
 */
#pragma once

#include <endian.h>

#include "base/must.h"

#define NUM_U64_DIGITS 20 /* of UINT64_MAX */

/* True and *out set when p[0..n) is digits only and fits; else false, *out untouched. */
must_check bool num_u64(const char *p, size_t n, uint64_t *out);
must_check bool num_u32(const char *p, size_t n, uint32_t *out);
/* As above with one optional leading '-'. */
must_check bool num_i64(const char *p, size_t n, int64_t *out);
must_check bool num_i32(const char *p, size_t n, int32_t *out);

/* As memcached's clients may write them, and as it reads stored ones: white space in front, a
 * sign, digits of any number; then the end, or white space or a NUL, behind which anything may
 * stand. An unsigned one has a minus sign only when it is 0. */
must_check bool num_u64_loose(const char *p, size_t n, uint64_t *out);
must_check bool num_i64_loose(const char *p, size_t n, int64_t *out);

/* A count with an optional suffix k, m or g; `unit` is what k stands for (1000 or 1024).
 * False on overflow, on an empty word and on anything after the suffix. */
must_check bool num_scaled(const char *p, size_t n, uint64_t unit, uint64_t *out);

/* A finite decimal fraction such as 1.25; the whole word. Locale is ignored. */
must_check bool num_double(const char *p, size_t n, double *out);

/* A number and one of these units behind it, "" for a number alone: as many of what the units
 * count. */
struct num_unit {
    const char *name;
    double value;
};
must_check bool num_with_unit(const char *p, size_t n, const struct num_unit *units,
                              size_t count, double *out);
/* Nanoseconds in a unit of time, the largest last; a number alone is of microseconds. */
#define NUM_TIMES 5
extern const struct num_unit num_times[NUM_TIMES];

/* A share: a number, or with '%' behind it so many hundredths. is_percent: which; or NULL. */
must_check bool num_share(const char *p, size_t n, double *out, bool *is_percent);

/* 1 to 65535, or no number: a service's name. getaddrinfo(3) takes other numbers modulo 2^16. */
must_check bool num_may_be_port(const char *p, size_t n);

/* Writes the digits without terminator, at most NUM_U64_DIGITS of them; returns how many. */
size_t num_put_u64(char *dst, uint64_t value);

/* Side by side in one word, the first digit lowest: two fours, of each two pairs, of each two
 * digits, all of a kind divided at once by multiplying with 2^20/100 and 2^10/10, rounded up so
 * little that it makes no difference below 10^4 and 10^2. */
static inline uint64_t
num_eight_digits(uint64_t value)
{
    uint64_t fours = value / 10000 | (value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t pairs = hundreds | (fours - hundreds * 100) << 16;
    uint64_t tens = (pairs * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return tens | (pairs - tens * 10) << 8 | UINT64_C(0x3030303030303030);
}

#define NUM_EIGHT_DIGITS UINT64_C(100000000) /* what has more */

/* The digits of each number of up to NUM_SHORT_DIGITS, and behind them how many they are. */
#define NUM_SHORT_DIGITS 3
#define NUM_SHORT 1000
extern const char num_short[NUM_SHORT][NUM_SHORT_DIGITS + 1];

/* As num_put_u64, into space of NUM_U64_DIGITS bytes, all of which they may write to. Most numbers are
 * short; num_put_longer is for others only. */
size_t num_put_longer(char *dst, uint64_t value);

static inline size_t
num_put_freely(char *dst, uint64_t value)
{
    if (unlikely(value >= NUM_SHORT)) {
        return num_put_longer(dst, value);
    }
    memcpy(dst, num_short[value], sizeof num_short[value]);
    return (size_t)num_short[value][NUM_SHORT_DIGITS];
}

/* NUM_PADDED digits, in the order in which they are written. */
#define NUM_PADDED 16
struct num_padded {
    uint64_t words[2];
};

/* The first ones are zeros as it may be; value has no more. */
static inline struct num_padded
num_padded_of(uint64_t value)
{
    const uint64_t eight = NUM_EIGHT_DIGITS;
    must(value < eight * eight);
    uint64_t high = 0;
    if (unlikely(value >= eight)) {
        high = value / eight;
        value %= eight;
    }
    return (struct num_padded){
        {htole64(high == 0 ? num_eight_digits(0) : num_eight_digits(high)),
         htole64(num_eight_digits(value))}};
}

static inline void
num_put_padded(char *dst, uint64_t value)
{
    const struct num_padded digits = num_padded_of(value);
    memcpy(dst, &digits, sizeof digits);
}
