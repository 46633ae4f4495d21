/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What writers and readers of the JSON agree on. The number of the schema changes when a
 * member changes its meaning or goes; members that are added leave it.
 */
#pragma once

#include <stdbool.h>

#define REPORT_SCHEMA "mcload/1"

/* The percentiles in "pct", in order. */
struct schema_point {
    const char *name;
    double q;
    bool has_ci; /* stands in "ci" too */
};

#define SCHEMA_POINTS 11
extern const struct schema_point schema_points[SCHEMA_POINTS];
