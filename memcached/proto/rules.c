/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/rules.h"

#include "base/must.h"

static const struct rules tables[PROFILE_COUNT] = {
    [PROFILE_14] =
        {
#define RULE(type, name, v14, v16, meaning) .name = (v14),
#include "proto/rules.def"
#undef RULE
        },
    [PROFILE_16] =
        {
#define RULE(type, name, v14, v16, meaning) .name = (v16),
#include "proto/rules.def"
#undef RULE
        },
};

const struct rules *
rules_of(enum profile profile)
{
    must(profile < PROFILE_COUNT);
    return &tables[profile];
}
