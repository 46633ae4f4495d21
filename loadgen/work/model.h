/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Workloads by name: texts for the options that a name stands for (models.def). Pure.
 */
#pragma once

#include <stdio.h>

struct model {
    const char *name;
    const char *key_size, *value_size, *popularity, *ops, *expiry, *arrivals, *on_miss;
    const char *about;
};

/* NULL when there is none of that name. */
const struct model *model_find(const char *name);
/* Number i of all, NULL after the last. */
const struct model *model_at(unsigned i);
/* All of them with what they stand for, as options. */
void model_help(FILE *out);
