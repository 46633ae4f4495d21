/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Cuts lines as most clients write them, one blank between words, while they are looked at for the
 * first time; of others only ascii_parse can decide. There is a line feed behind what is cut, and
 * ASCII_CUT_SLACK - 1 bytes behind that may be read. Pure.
 *
 *     p = ascii_cut_get(p, end)     "get a b\r\n"
 *     ascii_cut_key(&p, &key)          ^         while there is a blank
 *     ascii_cut_key(&p, &key)            ^
 *     ascii_line_end(p, end)               ^
 */
#pragma once

#include "base/bytes.h"
#include "proto/ascii.h"

_Static_assert(ASCII_CUT_SLACK == BYTES_SLACK, "bytes that may be read behind a line");

/* The first byte that no key of a plain request holds: a blank, an end of line, or another control
 * character. There is one. */
static inline const char *
ascii_word_end(const char *p)
{
    return bytes_find_below(p, ' ' + 1);
}

/* Behind the verb of a "get", at the blank; NULL: it is none. */
static inline const char *
ascii_cut_get(const char *p, const char *end)
{
    return end - p > 4 && memcmp(p, "get ", 4) == 0 ? p + 3 : NULL;
}

/* The next key, with the blank in front of it, at which p is. False: it is a bad one. */
static inline bool
ascii_cut_key(const char **p, struct slice *key)
{
    const char *begin = *p + 1;
    const char *end = ascii_word_end(begin);
    *key = (struct slice){begin, (size_t)(end - begin)};
    if (unlikely(key->len - 1 >= REQ_KEY_MAX)) {
        return false;
    }
    *p = end;
    return true;
}

/* Where the next line begins; NULL: this one does not end at p, or not in front of `end`. */
static inline const char *
ascii_line_end(const char *p, const char *end)
{
    p += *p == '\r';
    return p < end && *p == '\n' ? p + 1 : NULL;
}
