/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/part.h"

const char *
part_each(const char *p, size_t len, char separator, part_take *take, void *arg)
{
    const char *wrong = NULL, *end = p + len;
    for (const char *stop; wrong == NULL && p != NULL;
         p = stop != NULL ? stop + 1 : NULL) {
        stop = memchr(p, separator, (size_t)(end - p));
        wrong = take(arg, p, (size_t)((stop != NULL ? stop : end) - p));
    }
    return wrong;
}
