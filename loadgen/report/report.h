/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A result as text and as JSON, both from the same struct. Pure but for the stream.
 */
#pragma once

#include <stdio.h>

#include "loadgen/options/options.h"
#include "loadgen/measure/result.h"
#include "loadgen/report/schema.h"

/* mutilate's table and totals, which existing scripts parse, then what it does not have.
 * Times are in microseconds. Nothing before or inside the table but its own rows may contain
 * the letters "read". A percentile that falls among requests never answered is printed as
 * ">T": it is above T. */
void report_text(const struct result *r, const struct options *o, FILE *out);

/* "VALID", or "INVALID:" and the reasons. */
void report_verdict(const struct result *r, FILE *out);

/* Times are in nanoseconds; numbers are finite or null. */
void report_json(const struct result *r, const struct options *o, int argc, char **argv,
                 FILE *out);
