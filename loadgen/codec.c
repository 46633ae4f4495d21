/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/codec.h"

#include <assert.h>
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

static const char *const verb_names[] = {
    [CODEC_GET] = "get",     [CODEC_GETS] = "gets", [CODEC_SET] = "set",
    [CODEC_ADD] = "add",     [CODEC_CAS] = "cas",   [CODEC_DELETE] = "delete",
    [CODEC_TOUCH] = "touch", [CODEC_INCR] = "incr",
};
static_assert(COUNT(verb_names) == CODEC_VERBS, "one name each");

const char *
codec_verb_name(enum codec_verb verb)
{
    must((unsigned)verb < CODEC_VERBS);
    return verb_names[verb];
}

void
codec_parser_init(struct codec_parser *p)
{
    client_parser_init(&p->text);
}
