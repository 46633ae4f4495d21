/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/text_out.h"

#include <stdio_ext.h>

/* 0: an error. */
static ssize_t
append(void *cookie, const char *bytes, size_t len)
{
    struct text_out *t = cookie;
    if (t->room - t->len < len) {
        size_t room = 2 * (t->room + len);
        char *grown = realloc(t->bytes, room);
        if (grown == NULL) {
            t->has_failed = true;
            return 0;
        }
        t->bytes = grown;
        t->room = room;
    }
    memcpy(t->bytes + t->len, bytes, len);
    t->len += len;
    return (ssize_t)len;
}

bool
text_out_open(struct text_out *t)
{
    t->bytes = NULL;
    t->len = t->room = 0;
    t->has_failed = false;
    t->file = fopencookie(t, "w", (cookie_io_functions_t){.write = append});
    if (t->file == NULL) {
        return false;
    }
    __fsetlocking(t->file, FSETLOCKING_BYCALLER);
    return setvbuf(t->file, t->buffer, _IOFBF, sizeof t->buffer) == 0;
}

bool
text_out_close(struct text_out *t)
{
    t->has_failed |= ferror(t->file) != 0;
    t->has_failed |= fclose(t->file) != 0;
    t->file = NULL;
    if (t->has_failed) {
        free(t->bytes);
        t->bytes = NULL;
        t->len = 0;
    }
    return !t->has_failed;
}
