/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What mcload does with files: plot, compare and merge with results that were saved as JSON,
 * convert with traces. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum tool_status {
    TOOL_DONE = 0,
    TOOL_USAGE = 1,
    TOOL_UNREADABLE = 2, /* a file could not be read or written, or is no result */
};

/* Whether `name` is one of them. */
bool tool_is(const char *name);
/* argv[0] is its name. One line on `err` when it fails. */
enum tool_status tool_run(int argc, char **argv, FILE *out, FILE *err);
