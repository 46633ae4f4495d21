/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Texts that are made of parts: lists, and words that say what follows them. Pure; any thread.
 */
#pragma once

#include <stddef.h>
#include <string.h>

#include "base/must.h"

/* What stands behind `head`; NULL: the text does not begin so. */
static inline const char *
part_after(const char *text, const char *head)
{
    size_t len = strlen(head);
    return strncmp(text, head, len) == 0 ? text + len : NULL;
}

/* NULL, or a sentence that ends the list. */
typedef const char *part_take(void *arg, const char *p, size_t len);

/* Calls `take` with each part of p[0..len), the empty ones too. NULL, or its sentence. */
must_check const char *part_each(const char *p, size_t len, char separator,
                                 part_take *take, void *arg);
