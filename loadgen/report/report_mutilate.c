/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

static const double quantiles[] = {.05, .10, .90, .95, .99};
#define QUANTILES (sizeof quantiles / sizeof quantiles[0])

static void
print_row(const struct report_row *row, const struct hist *waits, double unit, FILE *out)
{
    const struct hist *h = row->latency;
    fprintf(out, "%-7s %7.1f %7.1f %7.1f", row->name, hist_mean(h) / unit,
            hist_stddev(h) / unit, (double)hist_min(h) / unit);
    for (size_t i = 0; i < QUANTILES; i++) {
        struct quantile q = result_quantile(h, waits, row->censored, quantiles[i]);
        fprintf(out, " %7.1f", (double)q.ns / unit);
    }
    fputc('\n', out);
}

void
report_mutilate(const struct result *r, const struct options *o, FILE *out)
{
    struct report_table table;
    struct report_totals t = report_totals(r);
    char name[REPORT_NAME_MAX];
    report_table_of(r, o, REPORT_ALL, &table);
    struct report_row op_q = {"op_q", table.tally->outstanding, 0};
    fprintf(out, "%-7s %7s %7s %7s", "#type", "avg", "std", "min");
    for (size_t i = 0; i < QUANTILES; i++) {
        report_column_name(quantiles[i], name);
        fprintf(out, " %7s", name);
    }
    fputc('\n', out);
    print_row(&table.rows[TALLY_READ], table.tally->waits, REPORT_NS_PER_US, out);
    print_row(&table.rows[TALLY_UPDATE], table.tally->waits, REPORT_NS_PER_US, out);
    print_row(&op_q, table.tally->waits, 1, out);
    report_print_counts(r, &t, out);
    fprintf(out, "RX %10.0f bytes : %6.1f MB/s\n", t.rx,
            result_ratio(t.rx / REPORT_MEGABYTE, t.seconds));
    fprintf(out, "TX %10.0f bytes : %6.1f MB/s\n", t.tx,
            result_ratio(t.tx / REPORT_MEGABYTE, t.seconds));
}
