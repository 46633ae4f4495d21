/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a run needs of the system's limits. Start-up thread.
 */
#pragma once

#include <stdio.h>

#include "loadgen/options/options.h"

/* Connections need a file descriptor each, and the soft limit is often 1024: raises it as far
 * as needed and allowed. A line on `err` when that fails. */
void rlimit_raise_files(const struct options *o, unsigned threads, FILE *err);
