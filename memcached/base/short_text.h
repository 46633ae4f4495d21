/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A text of at most 16 bytes that others are compared with, in a few instructions whatever its
 * length is. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SHORT_TEXT_MAX 16

struct short_text {
    uint64_t words[2], mask[2];
};

/* Of at most SHORT_TEXT_MAX bytes. */
static inline struct short_text
short_text_of(const char *p, size_t len)
{
    struct short_text t = {{0, 0}, {0, 0}};
    memcpy(t.words, p, len);
    memset(t.mask, 0xff, len);
    return t;
}

/* Whether p, of which SHORT_TEXT_MAX bytes can be read, begins with it. */
static inline bool
short_text_begins(const struct short_text *t, const char *p)
{
    uint64_t words[2];
    memcpy(words, p, sizeof words);
    return (((words[0] ^ t->words[0]) & t->mask[0]) |
            ((words[1] ^ t->words[1]) & t->mask[1])) == 0;
}
