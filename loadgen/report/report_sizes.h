/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Latencies of gets by the bytes of the values that came, from the intended start.
 */
#pragma once

#include <stdio.h>

#include "loadgen/measure/tally.h"
#include "loadgen/report/json.h"

/* A table, when there were gets of more than one class. */
void report_sizes_text(const struct tally *t, FILE *out);
/* A member of the object that j is in: those that there were. */
void report_sizes_json(const struct tally *t, struct json *j);
