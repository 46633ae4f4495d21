/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A result in its forms, all from the same struct. Pure but for the stream.
 */
#pragma once

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"

/* The summary; with --verbose mutilate's table and totals and what it does not have; and what
 * was asked for by options of its own. Times are in microseconds. Nothing but the rows of the
 * table may contain the letters "read" (names of classes and servers may). A percentile that falls among
 * requests never answered is printed as ">T": it is above T. */
void report_text(const struct result *r, const struct options *o, FILE *out);

/* Verdict, rate, latency, hits, errors: a line each; of several classes the verdict, and a
 * table. `all`: each reason of the verdict. */
void report_summary(const struct result *r, bool all, FILE *out);

/* mutilate's report and nothing else, its columns and widths. Percentiles among requests
 * never answered are printed as the bound alone. */
void report_mutilate(const struct result *r, const struct options *o, FILE *out);

/* A line of names; and one line for each class and kind of request ("read", "update"), and
 * those of the whole run. Times are in microseconds; what is not known is left empty. Lines of
 * a scan end with the rate of their run, `target`. */
void report_csv_head(const struct options *o, FILE *out);
void report_csv_rows(const struct result *r, const struct options *o, double target,
                     FILE *out);

/* Times are in nanoseconds; numbers are finite or null. */
void report_json(const struct result *r, const struct options *o, int argc, char **argv,
                 FILE *out);

/* The text layout of HdrHistogram's percentile distribution, in microseconds, five steps to
 * each half of what is left. Requests never answered count as slower than all, and have no
 * lines. */
void report_hgrm(const struct result *r, enum counters_from from, FILE *out);

/* "VALID"; or "INVALID: ", why, and what to do: the most telling reason, or a line for each. */
void report_verdict(const struct result *r, bool all, FILE *out);

/* HdrHistogram's log of intervals: latencies from the intended start, in nanoseconds; requests
 * never answered are not among them. Its head has what all lines are relative to, seconds since
 * the epoch. */
void report_hlog_head(double start_s, FILE *out);

/* A line for each interval, or, with classes, for each interval of each class, which is its
 * tag. The run began `offset_s` after what the head says; its series kept their latencies.
 * False when memory is short, or out does not take it. */
must_check bool report_hlog_rows(const struct result *r, bool has_classes,
                                 double offset_s, FILE *out);

/* A line a run, times in microseconds: gets, or updates when there are no gets; of the class
 * that measures when there is one. A percentile among requests never answered is how long
 * they were waited for at least: the columns are for programs. In mutilate's format its
 * columns and widths, under the names of what stands in them; as CSV the lines of a run with
 * its rate behind them. */
void report_scan_head(const struct options *o, FILE *out);
void report_scan_row(const struct result *r, const struct options *o, double target,
                     FILE *out);
