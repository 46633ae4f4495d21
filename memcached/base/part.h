/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Texts that are made of parts: lists, and words that say what follows them. Pure; any thread.
 */
#pragma once

#include "base/must.h"

/* What stands behind `head`; NULL: the text does not begin so. */
static inline const char *
part_after(const char *text, const char *head)
{
    size_t len = strlen(head);
    return strncmp(text, head, len) == 0 ? text + len : NULL;
}

/* Whether p[0..len) is this word. */
static inline bool
part_is(const char *p, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(p, word, len) == 0;
}

/* Whether the list, with one separator between its words, has this one. */
must_check bool part_has(const char *list, char separator, const char *word);

/* The index of text[0..len) among the names, of which some may be NULL; `count`: it is none. */
must_check unsigned part_find(const char *const *names, unsigned count, const char *text,
                              size_t len);

/* The row of a table that has text[0..len) as its first member, a name (const char *), which may be
 * NULL in some; NULL: none has. */
must_check const void *part_row(const void *rows, size_t count, size_t size,
                                const char *text, size_t len);
#define PART_ROWS(table) (table), sizeof(table) / sizeof(table)[0], sizeof(table)[0]

/* "host", "host:port", "[v6]", "[v6]:port" or "v6": a colon separates the port only where it cannot
 * belong to an IPv6 address. *port becomes what is behind it, if there is one. False: it is none of
 * these, or the host has no room. */
must_check bool part_host(const char *text, char *host, size_t size, const char **port);

/* NULL, or a sentence that ends the list. */
typedef const char *part_take(void *arg, const char *p, size_t len);

/* Calls `take` with each part of p[0..len), the empty ones too. NULL, or its sentence. */
must_check const char *part_each(const char *p, size_t len, char separator,
                                 part_take *take, void *arg);
