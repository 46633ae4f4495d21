/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/uri.h"

#include <stdbool.h>
#include <string.h>

static bool
is_plain(unsigned char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("-._~", byte) != NULL);
}

size_t
uri_encode(char *dst, const char *src, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    char *to = dst;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)src[i];
        if (is_plain(byte)) {
            *to++ = (char)byte;
        } else {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    return (size_t)(to - dst);
}
