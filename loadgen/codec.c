/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/codec.h"

#include <string.h>

static const struct codec *const codecs[] = {
    &codec_ascii,
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

const struct codec *
codec_at(unsigned i)
{
    return i < COUNT(codecs) ? codecs[i] : NULL;
}

const struct codec *
codec_find(const char *name)
{
    for (unsigned i = 0; i < COUNT(codecs); i++) {
        if (strcmp(codecs[i]->name, name) == 0) {
            return codecs[i];
        }
    }
    return NULL;
}

void
codec_parser_init(struct codec_parser *p)
{
    client_parser_init(&p->text);
}
