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

static const struct schema_point schema_points[] = {
    {"p1", .01, false},    {"p5", .05, false},      {"p10", .10, false},
    {"p25", .25, false},   {"p50", .50, true},      {"p75", .75, false},
    {"p90", .90, true},    {"p95", .95, true},      {"p99", .99, true},
    {"p99.9", .999, true}, {"p99.99", .9999, true},
};
#define SCHEMA_POINTS (sizeof schema_points / sizeof schema_points[0])
