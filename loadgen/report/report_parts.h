/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The parts that the forms of a report are made of, and what they share. Pure but for the
 * stream.
 */
#pragma once

#include <limits.h>

#include "loadgen/measure/result.h"
#include "base/json.h"
#include "loadgen/options/options.h"
#include "loadgen/search/search.h"

/* ---- what the tables share ------------------------------------------------------------ */

#define REPORT_MEGABYTE 1048576.0
#define REPORT_NS_PER_US 1e3

/* Nanoseconds, and a quantile of a histogram of them, in microseconds. */
static inline double
report_us(uint64_t ns)
{
    return (double)ns / REPORT_NS_PER_US;
}

static inline double
report_us_at(const struct hist *h, double q)
{
    return report_us(hist_quantile(h, q));
}

/* A number where the quantile is known; else it lies among requests never answered, or beyond
 * all. */
static inline struct json_member
report_known(const char *key, struct quantile q, bool is_known)
{
    if (!is_known || q.is_bound) {
        return JSON_NULL(key);
    }
    return JSON(key, q.ns);
}

/* How many percent of b counts are a. */
static inline double
report_percent(double a, double b)
{
    return 100 * result_ratio(a, b);
}

static inline double
report_count(const ctr_t *c)
{
    return (double)ctr_get(c);
}

/* What the table's row of a verb is made of. */
struct report_row {
    const char *name;
    const struct hist *latency;
    uint64_t censored; /* requests without a verb are shared out as the mix has it */
};

struct report_table {
    const struct counters *counters;
    struct report_row rows[COUNTERS_VERBS];
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
/* Members of the object that j is in: what a histogram is added up from without loss. */
void report_buckets_json(const struct hist *h, struct json *j);

/* "Errors = 3 (timeout 3)"; a line. */
void report_errors(const struct counters *t, FILE *out);

void report_print_table(const struct report_form *f, const struct report_table *t,
                        const struct report_names *names, FILE *out);

/* ---- parts ------------------------------------------------------------------------------ */

/* The processes of a swarm; nothing without one. */
void report_agents_text(const struct result *r, FILE *out);
void report_agents_json(const struct result *r, struct json *j);

/* Latencies of gets by the bytes of the values that came, from the intended start: a table, when
 * there were gets of more than one class; a member of the object that j is in. */
void report_sizes_text(const struct counters *t, FILE *out);
void report_sizes_json(const struct counters *t, struct json *j);

/* How wide the interval of a percentile is (until.h), in the class where it is widest. */
double report_until_width(const struct result *r, double q);

/* "Env NAME = VALUE", of a server "Env SERVER NAME = VALUE"; what has the letters that begin
 * mutilate's table is left to the JSON. */
void report_fact(const char *server, const char *name, const char *value, FILE *out);
/* Version and settings of the servers, a line each. A member of the object that j is in, none
 * when they are unknown. */
void report_settings_text(const struct server_settings *s, const char *const *names,
                          FILE *out);
void report_settings_json(const struct server_settings *s, const char *const *names,
                          struct json *j);

/* What the servers said of themselves; a line, nothing when they were not asked. */
void report_stats_text(const struct server_stats *s, FILE *out);
void report_stats_json(const struct server_stats *s, const char *const *names,
                       struct json *j);

/* The answer of a search; a member "search" of the object that is open, times in
 * nanoseconds. */
void report_search_text(const struct search *s, const struct goal *g, FILE *out);
void report_search_json(const struct search *s, const struct goal *g, struct json *j);
