/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/phrase.h"

#include <stdarg.h>

void
phrase_add(struct phrase *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->to + t->len, t->size - t->len, fmt, args);
    va_end(args);
    must(n >= 0 && (size_t)n < t->size - t->len);
    t->len += (size_t)n;
}
