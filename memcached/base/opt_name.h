/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Names of options: which row a written name means, and what was probably meant. Part of
 * base/opt.
 */
#pragma once

#include "base/opt.h"

#define OPT_WHY_MAX 400
#define OPT_NAMES_MAX 300

static inline bool
opt_takes_value(const struct opt *row)
{
    return row->arg != NULL;
}

static inline bool
opt_is_optional(const struct opt *row)
{
    return row->arg[strlen(row->arg) - 1] == '?';
}

/* How messages name the row. */
const char *opt_spelling(const struct opt *row, char dst[80]);
/* Its values: "N", or "one, two or three" for alternatives. */
const char *opt_values(const struct opt *row, char dst[160]);

/* Whether the name begins with these bytes, where '_' reads as '-'. */
bool opt_begins_with(const char *name, const char *text, size_t len);
const struct opt *opt_find_letter(const struct opt_table *t, char letter);
/* The row with this name, or the one that it abbreviates, where '_' reads as '-'. NULL, and a
 * sentence in `why`: there is none, or several. */
const struct opt *opt_find_long(const struct opt_table *t, const char *text, size_t len,
                                char why[OPT_WHY_MAX]);
/* "; did you mean --this or -o that? See --help" where a row is like it; else empty. Returns
 * dst. is_word: it was written as a word of the list. */
const char *opt_suggest(const struct opt_table *t, bool is_word, const char *text,
                        size_t len, char dst[OPT_NAMES_MAX]);
const struct opt *opt_find_word(const struct opt_table *t, const char *text, size_t len);
