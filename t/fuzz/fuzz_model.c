/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Texts of workloads: what was read and is written in one word is read as the same.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "loadgen/work/model.h"

#define WORD_MAX 65536

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static char word[WORD_MAX];
    struct model m = {.name = "m"}, again = {.name = "m"};
    unsigned line;
    char *text = malloc(len + 1);
    must(text != NULL);
    memcpy(text, bytes, len);
    text[len] = '\0';
    const char *wrong = model_parse(&m, text, len, &line);
    must(line >= 1 && line <= len + 1);
    must(wrong == NULL || strlen(wrong) > 0);
    if (wrong == NULL && model_put(&m, word, sizeof word)) {
        must(model_parse(&again, word, strlen(word), &line) == NULL && line == 1);
        for (unsigned i = 0; i < MODEL_FIELDS; i++) {
            must((m.texts[i] == NULL) == (again.texts[i] == NULL));
            must(m.texts[i] == NULL || strcmp(m.texts[i], again.texts[i]) == 0);
        }
    }
    free(text);
    return 0;
}
