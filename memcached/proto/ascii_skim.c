/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include <endian.h>
#include <string.h>

#include "base/must.h"
#include "proto/ascii.h"

#define LANES 16
#define ROUNDS_MAX 255 /* before a lane's count overflows */
#define VERB "get "
#define VERB_LEN (sizeof VERB - 1)
#define SET "set "
#define SET_LEN (sizeof SET - 1)
#define NOREPLY " noreply"
#define NOREPLY_LEN (sizeof NOREPLY - 1)
#define DIGITS_MAX 10 /* of a number in a plain request */

typedef uint8_t lanes __attribute__((vector_size(LANES)));

static size_t
count_in_rounds(const char *p, size_t rounds)
{
    lanes counts = {0}, blanks = {0};
    size_t sum = 0;
    blanks += ' ';
    for (size_t i = 0; i < rounds; i++) {
        lanes text;
        memcpy(&text, p + i * LANES, sizeof text);
        counts -= (lanes)(text == blanks); /* what is equal is all ones, that is, -1 */
    }
    for (unsigned i = 0; i < LANES; i++) {
        sum += counts[i];
    }
    return sum;
}

static size_t
count_blanks(const char *p, size_t n)
{
    size_t sum = 0;
    while (n >= LANES) {
        size_t rounds = n / LANES < ROUNDS_MAX ? n / LANES : ROUNDS_MAX;
        sum += count_in_rounds(p, rounds);
        p += rounds * LANES;
        n -= rounds * LANES;
    }
    for (size_t i = 0; i < n; i++) {
        sum += p[i] == ' ';
    }
    return sum;
}

/* No word is longer than a key may be. */
static bool
has_keys_only(const char *p, size_t n)
{
    while (n > REQ_KEY_MAX) {
        const char *blank = memrchr(p, ' ', REQ_KEY_MAX + 1);
        if (blank == NULL) {
            return false;
        }
        n -= (size_t)(blank + 1 - p);
        p = blank + 1;
    }
    return true;
}

size_t
ascii_skim_get(const char *p, size_t n, uint32_t keys)
{
    if (n <= VERB_LEN + 1 || memcmp(p, VERB, VERB_LEN) != 0 || p[VERB_LEN] <= ' ') {
        return 0;
    }
    const char *line_feed = memchr(p, '\n', n);
    if (line_feed == NULL) {
        return 0;
    }
    size_t len = (size_t)(line_feed - p);
    size_t text = len - (p[len - 1] == '\r') - VERB_LEN;
    bool has_few = text < keys || count_blanks(p + VERB_LEN, text) < keys;
    return has_few && has_keys_only(p + VERB_LEN, text) ? len + 1 : 0;
}

#define EACH_BYTE(b) (UINT64_C(0x0101010101010101) * (b))

/* The first byte that no key of a plain request holds: a blank, an end of line, or another control
 * character. There is one. Eight bytes at a time: subtracting leaves the high bit of each that
 * is lower, and of none before the first. */
static inline const char *
word_end(const char *p)
{
    for (;;) {
        uint64_t bytes;
        memcpy(&bytes, p, sizeof bytes);
        bytes = le64toh(bytes);
        uint64_t low = (bytes - EACH_BYTE('!')) & ~bytes & EACH_BYTE(0x80);
        if (low != 0) {
            return p + __builtin_ctzll(low) / 8;
        }
        p += sizeof bytes;
    }
}

size_t
ascii_cut_get(const char *p, const char *end, struct slice *keys, unsigned most,
              unsigned *count)
{
    const char *q = p + VERB_LEN - 1;
    unsigned n = 0;
    if ((size_t)(end - p) <= VERB_LEN || memcmp(p, VERB, VERB_LEN) != 0) {
        return 0;
    }
    while (*q == ' ') {
        const char *key = q + 1;
        q = word_end(key);
        if (q == key || q - key > REQ_KEY_MAX || n == most) {
            return 0;
        }
        keys[n++] = (struct slice){key, (size_t)(q - key)};
    }
    q += *q == '\r';
    if (q >= end || *q != '\n') {
        return 0;
    }
    *count = n;
    return (size_t)(q + 1 - p);
}

/* A blank and a number. Returns what is behind them; NULL: they are not there, or the number has too
 * many digits or is larger than `most`. */
static inline const char *
cut_number(const char *p, uint32_t most, uint32_t *number)
{
    uint64_t n = 0;
    uint8_t digit;
    if (*p++ != ' ') {
        return NULL;
    }
    const char *q = p;
    while ((digit = (uint8_t)(*q - '0')) <= 9) {
        n = n * 10 + digit;
        q++;
    }
    *number = (uint32_t)n;
    return q > p && q - p <= DIGITS_MAX && n <= most ? q : NULL;
}

size_t
ascii_cut_set(const char *p, const char *end, struct ascii_set *set)
{
    const char *key = p + SET_LEN;
    if ((size_t)(end - p) <= SET_LEN || memcmp(p, SET, SET_LEN) != 0) {
        return 0;
    }
    uint32_t exptime;
    const char *q = word_end(key);
    set->key = (struct slice){key, (size_t)(q - key)};
    if (set->key.len - 1 >= REQ_KEY_MAX ||
        (q = cut_number(q, UINT32_MAX, &set->flags)) == NULL ||
        (q = cut_number(q, INT32_MAX, &exptime)) == NULL ||
        (q = cut_number(q, REQ_VALUE_MAX, &set->value_len)) == NULL) {
        return 0;
    }
    set->exptime = (int32_t)exptime;
    set->is_noreply = *q == ' ' && memcmp(q, NOREPLY, NOREPLY_LEN) == 0;
    q += set->is_noreply ? NOREPLY_LEN : 0;
    q += *q == '\r';
    return q < end && *q == '\n' ? (size_t)(q + 1 - p) : 0;
}
