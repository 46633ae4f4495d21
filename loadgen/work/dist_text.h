/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The form that laws of all kinds are written in: "name:1,2,3". Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DIST_PARAMS_MAX 4

struct dist_params {
    double value[DIST_PARAMS_MAX];
    unsigned count;
};

/* Splits the text; false when a parameter is not a number or there are too many. */
bool dist_split(const char *text, size_t len, size_t *name_len,
                struct dist_params *params);
bool dist_is_name(const char *text, size_t len, const char *name);
