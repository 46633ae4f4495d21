/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The text protocol's profile-dependent rules as one struct of values. Code asks a rule,
 * never a profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum profile { PROFILE_14, PROFILE_16, PROFILE_COUNT };

struct rules {
#define RULE(type, name, v14, v16, meaning) type name;
#include "proto/rules.def"
#undef RULE
};

/* Constant tables, one a profile. */
const struct rules *rules_of(enum profile profile);
