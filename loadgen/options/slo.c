/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How well a class is to be served.
 */
#include "loadgen/options/group.h"

/* clang-format off */
static const struct opt rows[] = {
    {.name = "slo", SCOPE(SHARED), PARSE(objective_parse), OF_CLASS(slo), .arg = "pN:TIME",
     .help = "objective: N percent of the requests within TIME, e.g. p99:500us"},
};
/* clang-format on */

const struct class_group group_slo = {ROWS(rows)};
