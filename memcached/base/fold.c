/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/fold.h"

#include <string.h>

/* How much of it goes onto a line. */
static size_t
fitting(const char *text, size_t room)
{
    size_t end = strcspn(text, "\n"), len = end;
    if (end > room) {
        for (len = room; len > 0 && text[len] != ' '; len--) {
        }
    }
    return len > 0 ? len : strcspn(text, " \n");
}

void
fold_text(FILE *out, const char *text, unsigned indent, unsigned width)
{
    for (;;) {
        size_t len = fitting(text, width - indent);
        fprintf(out, "%.*s\n", (int)len, text);
        text += len + (text[len] != '\0');
        if (*text == '\0') {
            return;
        }
        fprintf(out, "%*s", (int)indent, "");
    }
}
