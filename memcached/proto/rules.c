/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "proto/rules.h"

#include "base/part.h"

static const struct rules tables[PROFILE_COUNT] = {
#define OWN_RULE(type, name, native, meaning)
    [PROFILE_14] =
        {
#define RULE(type, name, v14, v16, meaning) .name = (v14),
#include "proto/rules.def"
#undef RULE
        },
#define RULE(type, name, v14, v16, meaning) .name = (v16),
    [PROFILE_16] =
        {
#include "proto/rules.def"
        },
#undef OWN_RULE
#define OWN_RULE(type, name, native, meaning) .name = (native),
    [PROFILE_NATIVE] =
        {
#include "proto/rules.def"
        },
#undef RULE
#undef OWN_RULE
};

static const char *const names[PROFILE_COUNT] = {
    [PROFILE_14] = "1.4",
    [PROFILE_16] = "1.6",
    [PROFILE_NATIVE] = "native",
};

bool
rules_profile(const char *name, enum profile *profile)
{
    *profile = (enum profile)part_find(names, PROFILE_COUNT, name, strlen(name));
    return *profile < PROFILE_COUNT;
}

const char *
rules_profile_name(enum profile profile)
{
    must(profile < PROFILE_COUNT);
    return names[profile];
}

const struct rules *
rules_of(enum profile profile)
{
    must(profile < PROFILE_COUNT);
    return &tables[profile];
}
