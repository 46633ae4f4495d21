/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

#include "loadgen/report/report_parts.h"

static void
print_quantiles(const struct report_row *row, const struct hist *waits,
                const struct options *o, FILE *out)
{
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        struct quantile q =
            result_quantile(row->latency, waits, row->censored, o->percentiles[i]);
        if (q.is_bound) {
            fputc(',', out);
        } else {
            fprintf(out, ",%.3f", report_us(q.ns));
        }
    }
}

/* Names of classes are words; quoted all the same when they are not. */
static void
print_name(const char *name, FILE *out)
{
    fputc('"', out);
    for (const char *p = name; *p != '\0'; p++) {
        fprintf(out, *p == '"' ? "\"\"" : "%c", *p);
    }
    fputc('"', out);
}

static void
print_rows(const struct result *run, unsigned c, const struct options *o, double target,
           FILE *out)
{
    const struct result *r = c == REPORT_ALL ? run : &run->classes[c];
    const char *name = c == REPORT_ALL ? "all" : r->name;
    struct report_totals t = report_totals(r);
    struct report_table table;
    report_table_of(run, o, c, &table);
    const struct report_row *rows = table.rows;
    for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
        const struct hist *h = rows[verb].latency;
        print_name(name, out);
        fprintf(out, ",%s,%ju,%ju,%.3f,%.3f,%.3f", rows[verb].name,
                (uintmax_t)hist_count(h), (uintmax_t)rows[verb].censored,
                hist_mean(h) / REPORT_NS_PER_US, hist_stddev(h) / REPORT_NS_PER_US,
                report_us(hist_min(h)));
        print_quantiles(&rows[verb], table.counters->waits, o, out);
        fprintf(out, ",%.3f,%.3f,%.0f,%.0f,%ju,%.3f,%s", report_us(hist_max(h)),
                result_ratio((double)ctr_get(&r->total.done[verb]), t.seconds), t.keys,
                t.misses, (uintmax_t)counters_error_sum(&r->total), t.seconds,
                r->is_valid ? "true" : "false");
        if (o->scans) {
            fprintf(out, ",%.0f", target);
        }
        fputc('\n', out);
    }
}

void
report_csv_head(const struct options *o, FILE *out)
{
    char name[REPORT_NAME_MAX];
    fputs("class,type,count,unanswered,avg,std,min", out);
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        report_column_name(o->percentiles[i], name);
        fprintf(out, ",%s", name);
    }
    fprintf(out, ",max,qps,keys,misses,errors,seconds,valid%s\n",
            o->scans ? ",target" : "");
}

void
report_csv_rows(const struct result *r, const struct options *o, double target, FILE *out)
{
    for (unsigned i = 0; r->classes_len > 1 && i < r->classes_len; i++) {
        print_rows(r, i, o, target, out);
    }
    print_rows(r, REPORT_ALL, o, target, out);
}
