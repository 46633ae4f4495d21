/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What comes of several runs: the rows of a scan, the answer of a search.
 */
#pragma once

#include <stdio.h>

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/report/json.h"
#include "loadgen/search/search.h"

/* A line a run, times in microseconds: gets, or updates when there are no gets; of the class
 * that measures when there is one. A percentile among requests never answered is how long
 * they were waited for at least: the columns are for programs. In mutilate's format its
 * columns and widths, under the names of what stands in them; as CSV the lines of a run with
 * its rate behind them. */
void report_scan_head(const struct options *o, FILE *out);
void report_scan_row(const struct result *r, const struct options *o, double target,
                     FILE *out);

void report_search_text(const struct search *s, const struct goal *g, FILE *out);
/* A member "search" of the object that is open; times in nanoseconds. */
void report_search_json(const struct search *s, const struct goal *g, struct json *j);
