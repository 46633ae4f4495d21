/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/num.h"

bool
num_u64(const char *p, size_t n, uint64_t *out)
{
    if (n == 0) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned digit = (unsigned)(unsigned char)p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value)) {
            return false;
        }
    }
    *out = value;
    return true;
}

bool
num_u32(const char *p, size_t n, uint32_t *out)
{
    uint64_t value;
    if (!num_u64(p, n, &value) || value > UINT32_MAX) {
        return false;
    }
    *out = (uint32_t)value;
    return true;
}

static inline bool
give_sign(bool is_negative, uint64_t magnitude, int64_t *out)
{
    if (magnitude > (uint64_t)INT64_MAX + is_negative) {
        return false;
    }
    *out = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

bool
num_i64(const char *p, size_t n, int64_t *out)
{
    bool is_negative = n > 0 && p[0] == '-';
    uint64_t magnitude;
    return num_u64(p + is_negative, n - is_negative, &magnitude) &&
           give_sign(is_negative, magnitude, out);
}

static bool
is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
take_loose(const char *p, size_t n, bool *is_negative, uint64_t *magnitude)
{
    const char *end = p + n;
    while (p < end && is_space(*p)) {
        p++;
    }
    *is_negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *digits = p;
    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }
    return (p == end || *p == '\0' || is_space(*p)) &&
           num_u64(digits, (size_t)(p - digits), magnitude);
}

bool
num_u64_loose(const char *p, size_t n, uint64_t *out)
{
    bool is_negative;
    uint64_t magnitude;
    if (!take_loose(p, n, &is_negative, &magnitude) || (is_negative && magnitude > 0)) {
        return false;
    }
    *out = magnitude;
    return true;
}

bool
num_i64_loose(const char *p, size_t n, int64_t *out)
{
    bool is_negative;
    uint64_t magnitude;
    return take_loose(p, n, &is_negative, &magnitude) &&
           give_sign(is_negative, magnitude, out);
}

bool
num_i32(const char *p, size_t n, int32_t *out)
{
    int64_t value;
    if (!num_i64(p, n, &value) || value < INT32_MIN || value > INT32_MAX) {
        return false;
    }
    *out = (int32_t)value;
    return true;
}

bool
num_scaled(const char *p, size_t n, uint64_t unit, uint64_t *out)
{
    static const char suffixes[] = "kKmMgG";
    uint64_t factor = 1;
    const char *suffix = n > 0 ? memchr(suffixes, p[n - 1], sizeof suffixes - 1) : NULL;
    for (int i = suffix != NULL ? (int)(suffix - suffixes) : -1; i >= 0; i -= 2) {
        factor *= unit;
    }
    uint64_t value;
    return num_u64(p, n - (suffix != NULL), &value) &&
           !__builtin_mul_overflow(value, factor, out);
}

#define NUM_DOUBLE_DIGITS 18 /* fit a uint64_t; more says nothing to a double */

bool
num_double(const char *p, size_t n, double *out)
{
    bool is_negative = n > 0 && p[0] == '-';
    p += is_negative;
    n -= is_negative;
    const char *point = memchr(p, '.', n);
    size_t whole = point != NULL ? (size_t)(point - p) : n;
    size_t fraction = point != NULL ? n - whole - 1 : 0;
    uint64_t high = 0;
    uint64_t low = 0;
    if (whole + fraction == 0 || whole > NUM_DOUBLE_DIGITS ||
        fraction > NUM_DOUBLE_DIGITS || (whole > 0 && !num_u64(p, whole, &high)) ||
        (fraction > 0 && !num_u64(point + 1, fraction, &low))) {
        return false;
    }
    double scale = 1;
    for (size_t i = 0; i < fraction; i++) {
        scale *= 10;
    }
    double value = (double)high + (double)low / scale;
    *out = is_negative ? -value : value;
    return true;
}

const struct num_unit num_times[NUM_TIMES] = {
    {"", 1e3}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

bool
num_with_unit(const char *p, size_t n, const struct num_unit *units, size_t count,
              double *out)
{
    size_t len = 0;
    double value;
    while (len < n && memchr("-.0123456789", p[len], 12) != NULL) {
        len++;
    }
    if (!num_double(p, len, &value)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (strlen(units[i].name) == n - len &&
            memcmp(units[i].name, p + len, n - len) == 0) {
            *out = value * units[i].value;
            return true;
        }
    }
    return false;
}

bool
num_share(const char *p, size_t n, double *out, bool *is_percent)
{
    bool has_sign = n > 0 && p[n - 1] == '%';
    if (!num_double(p, n - has_sign, out)) {
        return false;
    }
    *out /= has_sign ? 100 : 1;
    if (is_percent != NULL) {
        *is_percent = has_sign;
    }
    return true;
}

/* log10(2) = 0.30103 = 1233 / 2^12, close enough for 64 bits. */
#define LOG10_2_NUMERATOR 1233
#define LOG10_2_SHIFT 12

static size_t
count_digits(uint64_t value)
{
    static const uint64_t powers[] = {
        1,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        UINT64_C(10000000000000000000),
    };
    uint64_t at_least_1 = value | 1;
    unsigned bits = 64 - (unsigned)__builtin_clzll(at_least_1);
    unsigned log = bits * LOG10_2_NUMERATOR >> LOG10_2_SHIFT; /* one too many at most */
    return log + 1 - (at_least_1 < powers[log]);
}

bool
num_may_be_port(const char *p, size_t n)
{
    uint64_t port;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return true;
        }
    }
    return num_u64(p, n, &port) && port >= 1 && port <= UINT16_MAX;
}

__attribute__((noinline)) size_t
num_put_longer(char *dst, uint64_t value)
{
    if (value >= NUM_EIGHT_DIGITS) {
        return num_put_u64(dst, value);
    }
    uint64_t digits = num_eight_digits(value);
    unsigned zeros = (unsigned)__builtin_ctzll(digits ^ UINT64_C(0x3030303030303030)) / 8;
    uint64_t text = htole64(digits >> 8 * zeros);
    memcpy(dst, &text, sizeof text);
    return sizeof text - zeros;
}

/* Without zeros in front. */
#define NUMBER(h, t, o)                                                                  \
    {                                                                                    \
        (h)   ? '0' + (h)                                                                \
        : (t) ? '0' + (t)                                                                \
              : '0' + (o),                                                               \
            (h)   ? '0' + (t)                                                            \
            : (t) ? '0' + (o)                                                            \
                  : 0,                                                                   \
            (h) ? '0' + (o) : 0,                                                         \
            (h)   ? 3                                                                    \
            : (t) ? 2                                                                    \
                  : 1                                                                    \
    }
#define TEN(h, t)                                                                        \
    NUMBER(h, t, 0), NUMBER(h, t, 1), NUMBER(h, t, 2), NUMBER(h, t, 3), NUMBER(h, t, 4), \
        NUMBER(h, t, 5), NUMBER(h, t, 6), NUMBER(h, t, 7), NUMBER(h, t, 8),              \
        NUMBER(h, t, 9)
#define HUNDRED(h)                                                                       \
    TEN(h, 0), TEN(h, 1), TEN(h, 2), TEN(h, 3), TEN(h, 4), TEN(h, 5), TEN(h, 6),         \
        TEN(h, 7), TEN(h, 8), TEN(h, 9)

const char num_short[NUM_SHORT][NUM_SHORT_DIGITS + 1] = {
    HUNDRED(0), HUNDRED(1), HUNDRED(2), HUNDRED(3), HUNDRED(4),
    HUNDRED(5), HUNDRED(6), HUNDRED(7), HUNDRED(8), HUNDRED(9)};

size_t
num_put_u64(char *dst, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    if (value < 10) {
        *dst = (char)('0' + value);
        return 1;
    }
    size_t digits = count_digits(value);
    char *to = dst + digits;
    while (value >= 10) {
        const char *pair = pairs + 2 * (value % 100);
        value /= 100;
        *--to = pair[1];
        *--to = pair[0];
    }
    if (to > dst) {
        *--to = (char)('0' + value);
    }
    return digits;
}
