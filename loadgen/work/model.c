/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/work/model.h"

#include <string.h>

static const struct model models[] = {
#define MODEL(...) {__VA_ARGS__},
#include "loadgen/work/models.def"
#undef MODEL
};
#define MODELS (sizeof models / sizeof models[0])

const struct model *
model_at(unsigned i)
{
    return i < MODELS ? &models[i] : NULL;
}

const struct model *
model_find(const char *name)
{
    for (unsigned i = 0; i < MODELS; i++) {
        if (strcmp(models[i].name, name) == 0) {
            return &models[i];
        }
    }
    return NULL;
}

void
model_help(FILE *out)
{
    for (unsigned i = 0; i < MODELS; i++) {
        const struct model *m = &models[i];
        fprintf(out,
                "%s\n    %s\n    --keysize=%s\n    --valuesize=%s\n    --popularity=%s"
                " --ops=%s\n    --expiry=%s --arrivals=%s --on-miss=%s\n",
                m->name, m->about, m->key_size, m->value_size, m->popularity, m->ops,
                m->expiry, m->arrivals, m->on_miss);
    }
    fputs("twitter: statistics of March 2020 by Twitter and the authors of \"A large "
          "scale\n"
          "analysis of hundreds of in-memory cache clusters at Twitter\" (OSDI 2020),\n"
          "github.com/twitter/cache-trace, CC BY 4.0, adapted\n",
          out);
}
