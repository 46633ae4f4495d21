/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A result in its forms, all from the same struct. Pure but for the stream.
 */
#pragma once

#include <limits.h>
#include <stdio.h>

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/report/schema.h"

/* The summary; with --verbose mutilate's table and totals and what it does not have; and what
 * was asked for by options of its own. Times are in microseconds. Nothing but the rows of the
 * table may contain the letters "read" (names of classes may). A percentile that falls among
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
void report_hgrm(const struct result *r, enum tally_from from, FILE *out);

/* "VALID"; or "INVALID: ", why, and what to do: the most telling reason, or a line for each. */
void report_verdict(const struct result *r, bool all, FILE *out);

/* ---- what the tables share ------------------------------------------------------------ */

#define REPORT_MEGABYTE 1048576.0
#define REPORT_NS_PER_US 1e3
#define REPORT_NAME_MAX 24

/* Of a percentile, 0.95 or 0.999: "95th", "p999"; letters and digits only. */
void report_column_name(double q, char name[REPORT_NAME_MAX]);

/* What the table's row of a verb is made of. */
struct report_row {
    const char *name;
    const struct hist *latency;
    uint64_t censored; /* requests without a verb are shared out as the mix has it */
};

struct report_table {
    const struct tally *tally;
    struct report_row rows[TALLY_VERBS];
};

/* The columns of a table: mutilate's, or those of the text (--percentiles). */
struct report_form {
    int width;
    const double *quantiles; /* shares */
    unsigned count;
    bool is_full; /* with the maximum, and ">T" for what is above T */
};

struct report_form report_form_of(const struct options *o);
/* Names of the columns, and a row of them. Their lines are left open. */
void report_head(const struct report_form *f, const char *name, FILE *out);
void report_row(const struct report_form *f, const char *name,
                const struct report_row *row, const struct hist *waits, double unit,
                FILE *out);

/* What the rows of a table are called. */
struct report_names {
    const char *head, *reads, *updates, *depth;
};

extern const struct report_names report_mutilates; /* which parsers look for */

#define REPORT_ALL UINT_MAX

/* Of class number `c` of the run r, or REPORT_ALL: of the whole run, or of the class that
 * measures for it. */
void report_table_of(const struct result *r, const struct options *o, unsigned c,
                     struct report_table *table);

/* Requests answered in the window, and what else the totals are made of. */
struct report_totals {
    double done, seconds, keys, misses, skipped, offered, rx, tx;
};

struct report_totals report_totals(const struct result *r);
struct json;
/* Members of the object that j is in: what a histogram is added up from without loss. */
void report_buckets_json(const struct hist *h, struct json *j);

/* "Errors = 3 (timeout 3)"; a line. */
void report_errors(const struct tally *t, FILE *out);

void report_print_table(const struct report_form *f, const struct report_table *t,
                        const struct report_names *names, FILE *out);
/* mutilate's lines below its table. */
void report_print_totals(const struct report_form *f, const struct result *r, FILE *out);
