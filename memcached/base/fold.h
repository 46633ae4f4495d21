/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Sentences for a terminal.
 */
#pragma once

#include <stdio.h>

/* Writes the text, which begins at column `indent`, in lines of at most `width` columns, broken
 * between words and where it has line ends. A word that is longer stays whole. */
void fold_text(FILE *out, const char *text, unsigned indent, unsigned width);
