/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Lines of a file of options: what is understood of one lies in it, and means the same when it is
 * written in the form that --check-config prints.
 */
#include "fuzz.h"

#include "front/config_file.h"

static bool
is_within(const char *part, const char *text, size_t len)
{
    return part >= text && part + strlen(part) <= text + len;
}

static void
check_line(const char *bytes, size_t len)
{
    char *name, *value, *again, *same;
    char *text = malloc(len + 1);
    must(text != NULL);
    memcpy(text, bytes, len);
    text[len] = '\0';
    const char *wrong = config_file_split(text, &name, &value);
    must(wrong == NULL || strlen(wrong) > 0);
    must(name != NULL || value == NULL);
    if (wrong == NULL && name != NULL) {
        must(*name != '\0' && is_within(name, text, len));
        must(value == NULL || is_within(value, text, len));
        char *line = malloc(2 * len + 8);
        must(line != NULL);
        bool is_plain = value == NULL || strchr(value, '"') == NULL;
        sprintf(line, value != NULL ? "%s \"%s\"" : "%s", name, value);
        if (is_plain) {
            must(config_file_split(line, &again, &same) == NULL);
            must(again != NULL && strcmp(again, name) == 0);
            must((same == NULL) == (value == NULL));
            must(same == NULL || strcmp(same, value) == 0);
        }
        free(line);
    }
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *p = (const char *)bytes;
    const char *end = p + len;
    while (p < end) {
        const char *feed = memchr(p, '\n', (size_t)(end - p));
        const char *stop = feed != NULL ? feed : end;
        if (memchr(p, '\0', (size_t)(stop - p)) == NULL) { /* is refused before */
            check_line(p, (size_t)(stop - p));
        }
        p = stop + 1;
    }
    return 0;
}
