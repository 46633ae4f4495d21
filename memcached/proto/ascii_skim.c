/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */

#include "base/must.h"
#include "proto/ascii.h"
#include "proto/ascii_cut.h"

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

/* Words that begin in p[0..rounds * LANES); p[-1] is looked at. */
static uint32_t
count_in_rounds(const char *p, size_t rounds)
{
    lanes counts = {0}, blanks = {0};
    uint32_t sum = 0;
    blanks += ' ';
    for (size_t i = 0; i < rounds; i++) {
        lanes text, before;
        memcpy(&text, p + i * LANES, sizeof text);
        memcpy(&before, p + i * LANES - 1, sizeof before);
        /* what is true is all ones, that is, -1 */
        counts -= (lanes)(before == blanks) & (lanes)(text != blanks);
    }
    for (unsigned i = 0; i < LANES; i++) {
        sum += counts[i];
    }
    return sum;
}

/* Of text that begins with one. */
static uint32_t
count_words(struct slice text)
{
    const char *p = text.p + 1;
    size_t n = text.len - 1;
    uint32_t sum = 1;
    while (n >= LANES) {
        size_t rounds = n / LANES < ROUNDS_MAX ? n / LANES : ROUNDS_MAX;
        sum += count_in_rounds(p, rounds);
        p += rounds * LANES;
        n -= rounds * LANES;
    }
    for (size_t i = 0; i < n; i++) {
        sum += p[(ptrdiff_t)i - 1] == ' ' && p[i] != ' ';
    }
    return sum;
}

/* No word is longer than a key may be. */
static bool
has_keys_only(struct slice text)
{
    while (text.len > REQ_KEY_MAX) {
        const char *blank = memrchr(text.p, ' ', REQ_KEY_MAX + 1);
        if (blank == NULL) {
            return false;
        }
        text.len -= (size_t)(blank + 1 - text.p);
        text.p = blank + 1;
    }
    return true;
}

bool
ascii_count_keys(struct slice text, uint32_t *keys)
{
    *keys = memchr(text.p, ' ', text.len) == NULL ? 1 : count_words(text);
    return has_keys_only(text);
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
    uint32_t count;
    bool is_good = ascii_count_keys((struct slice){p + VERB_LEN, text}, &count);
    return is_good && count <= keys ? len + 1 : 0;
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
    const char *q = ascii_word_end(key);
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
    q = ascii_line_end(q, end);
    return q != NULL ? (size_t)(q - p) : 0;
}
