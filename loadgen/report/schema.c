/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/schema.h"

const struct schema_point schema_points[SCHEMA_POINTS] = {
    {"p1", .01, false},    {"p5", .05, false},      {"p10", .10, false},
    {"p25", .25, false},   {"p50", .50, true},      {"p75", .75, false},
    {"p90", .90, true},    {"p95", .95, true},      {"p99", .99, true},
    {"p99.9", .999, true}, {"p99.99", .9999, true},
};
