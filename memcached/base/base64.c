/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/base64.h"

#define GROUP_CHARS 4
#define GROUP_BYTES 3
#define CHAR_BITS 6
#define CHAR_MASK 63u
#define BYTE_BITS 8
#define NO_DIGIT 255 /* not in the alphabet */

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
base64_encode(char *dst, const char *src, size_t n)
{
    char *to = dst;
    for (size_t at = 0; at < n; at += GROUP_BYTES) {
        size_t part = n - at < GROUP_BYTES ? n - at : GROUP_BYTES;
        uint32_t bits = 0;
        for (size_t i = 0; i < GROUP_BYTES; i++) {
            bits = bits << BYTE_BITS | (i < part ? (uint8_t)src[at + i] : 0);
        }
        for (size_t i = 0; i < GROUP_CHARS; i++) {
            unsigned digit = bits >> (GROUP_CHARS - 1 - i) * CHAR_BITS & CHAR_MASK;
            *to++ = i <= part ? alphabet[digit] : '=';
        }
    }
    return (size_t)(to - dst);
}

static unsigned
digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (unsigned)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (unsigned)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0') + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : NO_DIGIT;
}

bool
base64_decode(char *dst, const char *src, size_t n, size_t *len)
{
    if (n == 0 || n % GROUP_CHARS != 0) {
        return false;
    }
    size_t padding = src[n - 1] != '=' ? 0 : src[n - 2] != '=' ? 1 : 2;
    char *to = dst;
    for (size_t at = 0; at < n; at += GROUP_CHARS) {
        size_t chars = at + GROUP_CHARS < n ? GROUP_CHARS : GROUP_CHARS - padding;
        uint32_t bits = 0;
        for (size_t i = 0; i < GROUP_CHARS; i++) {
            unsigned digit = i < chars ? digit_of(src[at + i]) : 0;
            if (digit == NO_DIGIT) {
                return false;
            }
            bits = bits << CHAR_BITS | digit;
        }
        for (size_t i = 0; i + 1 < chars; i++) {
            *to++ = (char)(bits >> (GROUP_BYTES - 1 - i) * BYTE_BITS);
        }
    }
    *len = (size_t)(to - dst);
    return true;
}
