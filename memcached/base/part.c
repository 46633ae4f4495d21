/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/part.h"

const void *
part_row(const void *rows, size_t count, size_t size, const char *text, size_t len)
{
    const char *row = rows, *name;
    for (size_t i = 0; i < count; i++, row += size) {
        memcpy(&name, row, sizeof name);
        if (name != NULL && part_is(text, len, name)) {
            return row;
        }
    }
    return NULL;
}

unsigned
part_find(const char *const *names, unsigned count, const char *text, size_t len)
{
    const char *const *row = part_row(names, count, sizeof *names, text, len);
    return row != NULL ? (unsigned)(row - names) : count;
}

bool
part_has(const char *list, char separator, const char *word)
{
    const char *end = strchrnul(list, separator);
    while (!part_is(list, (size_t)(end - list), word) && *end != '\0') {
        list = end + 1;
        end = strchrnul(list, separator);
    }
    return part_is(list, (size_t)(end - list), word);
}

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

bool
part_host(const char *text, char *host, size_t size, const char **port)
{
    const char *begin = text, *end = text + strlen(text), *colon = strchr(text, ':');
    if (*text == '[') {
        begin = text + 1;
        end = strchr(begin, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
        colon = end[1] == ':' ? end + 1 : NULL;
    } else if (colon != NULL && colon == strrchr(text, ':')) {
        end = colon;
    } else {
        colon = NULL;
    }
    size_t len = (size_t)(end - begin);
    if (len == 0 || len >= size || (colon != NULL && colon[1] == '\0')) {
        return false;
    }
    memcpy(host, begin, len);
    host[len] = '\0';
    *port = colon != NULL ? colon + 1 : *port;
    return true;
}
