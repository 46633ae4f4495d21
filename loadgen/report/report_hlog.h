/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The intervals of a run as HdrHistogram logs them: latencies from the intended start, in
 * nanoseconds. Requests never answered are not among them. Pure but for the stream.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "loadgen/measure/result.h"

/* What all lines are relative to: seconds since the epoch. */
void report_hlog_head(double start_s, FILE *out);

/* A line for each interval, or, with classes, for each interval of each class, which is its
 * tag. The run began `offset_s` after what the head says; its series kept their latencies.
 * False when memory is short, or out does not take it. */
must_check bool report_hlog_rows(const struct result *r, bool has_classes,
                                 double offset_s, FILE *out);
