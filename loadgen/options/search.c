/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Several runs in one: the search for the highest rate within a limit, and scans.
 */
#include "loadgen/options/group.h"

/* clang-format off */
static const struct opt rows[] = {
    REFUSED_VALUE(0, "search"), REFUSED_VALUE(0, "scan"),
};
/* clang-format on */

const struct run_group group_search = {ROWS(rows)};
