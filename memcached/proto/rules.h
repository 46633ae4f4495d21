/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The text protocol's profile-dependent rules as one struct of values. Code asks a rule,
 * never a profile.
 */
#pragma once

#include "base/must.h"

enum profile { PROFILE_14, PROFILE_16, PROFILE_NATIVE, PROFILE_COUNT };

struct rules {
#define RULE(type, name, v14, v16, meaning) type name;
#define OWN_RULE(type, name, native, meaning) type name;
#include "proto/rules.def"
#undef RULE
#undef OWN_RULE
};

/* "1.4", "1.6" or "native". False: no profile has this name. */
must_check bool rules_profile(const char *name, enum profile *profile);
const char *rules_profile_name(enum profile profile);
/* Constant tables, one a profile. */
const struct rules *rules_of(enum profile profile);
