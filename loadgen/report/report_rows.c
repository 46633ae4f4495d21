/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What all forms of a report share.
 */
#include "loadgen/report/report.h"

#include "loadgen/report/report_parts.h"

/* Requests of a class without answer that are updates. */
static uint64_t
updates_without_answer(const struct result *r, const struct lclass *c)
{
    return result_censored_updates(&r->total, mix_share_of_updates(&c->workload.mix));
}

void
report_table_of(const struct result *r, const struct options *o, unsigned c,
                struct report_table *table)
{
    bool is_all = c == REPORT_ALL;
    const struct counters *t = is_all ? result_shown(r) : &r->classes[c].total;
    enum counters_from from = is_all ? r->from : r->classes[c].from;
    uint64_t updates = 0;
    for (unsigned i = 0; i < o->classes_len; i++) {
        bool counts = is_all ? !r->has_shown || r->shown == i : c == i;
        const struct result *of = r->classes_len > 1 ? &r->classes[i] : r;
        updates += counts ? updates_without_answer(of, &o->classes[i]) : 0;
    }
    uint64_t reads = result_censored(t) - updates;
    *table = (struct report_table){
        .counters = t,
        .rows =
            {
                [COUNTERS_READ] = {"read", t->latency[from][COUNTERS_READ], reads},
                [COUNTERS_UPDATE] = {"update", t->latency[from][COUNTERS_UPDATE],
                                     updates},
            },
    };
}

struct report_totals
report_totals(const struct result *r)
{
    const struct counters *t = &r->total;
    double keys = report_count(&t->keys);
    return (struct report_totals){
        .done = (double)counters_done(t),
        .seconds = r->elapsed_s,
        .keys = keys,
        .misses = keys - report_count(&t->hits),
        .skipped = report_count(&t->skipped),
        .offered = report_count(&t->offered),
        .rx = report_count(&t->rx_bytes),
        .tx = report_count(&t->tx_bytes),
    };
}

/* ---- tables ---------------------------------------------------------------------------- */

struct report_form
report_form_of(const struct options *o)
{
    static const double few[] = {.05, .10, .90, .95, .99};
    bool is_mutilates = o->format == FORMAT_MUTILATE || o->format == FORMAT_MUTILATE_TEXT;
    return is_mutilates
               ? (struct report_form){7, few, sizeof few / sizeof few[0], false}
               : (struct report_form){8, o->percentiles, o->percentiles_len, true};
}

void
report_head(const struct report_form *f, const char *name, FILE *out)
{
    char column[OPTIONS_NAME_MAX];
    fprintf(out, "%-7s %*s %*s %*s", name, f->width, "avg", f->width, "std", f->width,
            "min");
    for (unsigned i = 0; i < f->count; i++) {
        options_percentile_name(f->quantiles[i], column);
        fprintf(out, " %*s", f->width, column);
    }
    if (f->is_full) {
        fprintf(out, " %*s", f->width, "max");
    }
}

static void
print_quantile(const struct report_form *f, struct quantile q, double unit, FILE *out)
{
    char text[32];
    snprintf(text, sizeof text, "%s%.1f", f->is_full && q.is_bound ? ">" : "",
             (double)q.ns / unit);
    fprintf(out, " %*s", f->width, text);
}

void
report_row(const struct report_form *f, const char *name, const struct report_row *row,
           const struct hist *waits, double unit, FILE *out)
{
    const struct hist *h = row->latency;
    fprintf(out, "%-7s %*.1f %*.1f %*.1f", name, f->width, hist_mean(h) / unit, f->width,
            hist_stddev(h) / unit, f->width, (double)hist_min(h) / unit);
    for (unsigned i = 0; i < f->count; i++) {
        print_quantile(f, result_quantile(h, waits, row->censored, f->quantiles[i]), unit,
                       out);
    }
    if (f->is_full) {
        struct quantile max = result_quantile(h, waits, row->censored, 1);
        max.ns = max.is_bound ? max.ns : hist_max(h);
        print_quantile(f, max, unit, out);
    }
}

void
report_print_table(const struct report_form *f, const struct report_table *t,
                   const struct report_names *names, FILE *out)
{
    const struct report_row depth = {names->depth, t->counters->outstanding, 0};
    const struct {
        const char *name;
        const struct report_row *row;
        double unit;
    } rows[] = {{names->reads, &t->rows[COUNTERS_READ], REPORT_NS_PER_US},
                {names->updates, &t->rows[COUNTERS_UPDATE], REPORT_NS_PER_US},
                {names->depth, &depth, 1}};
    report_head(f, names->head, out);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fputc('\n', out);
        report_row(f, rows[i].name, rows[i].row, t->counters->waits, rows[i].unit, out);
    }
    fputc('\n', out);
}

/* The widths are mutilate's, or wider. */
static void
print_bytes(const struct report_form *f, const char *name, double bytes, double seconds,
            FILE *out)
{
    fprintf(out, "%s %*.0f bytes : %*.1f MB/s\n", name, 2 * f->width - 4, bytes,
            f->width - 1, result_ratio(bytes / REPORT_MEGABYTE, seconds));
}

static void
print_totals(const struct report_form *f, const struct result *r, FILE *out)
{
    const struct report_totals t = report_totals(r);
    fprintf(out, "\nTotal QPS = %.1f (%.0f / %.1fs)\n", result_ratio(t.done, t.seconds),
            t.done, t.seconds);
    if (r->peak_qps > 0) {
        fprintf(out, "Peak QPS  = %.1f\n", r->peak_qps);
    }
    fprintf(out, "\nMisses = %.0f (%.1f%%)\nSkipped TXs = %.0f (%.1f%%)\n\n", t.misses,
            report_percent(t.misses, t.keys), t.skipped,
            report_percent(t.skipped, t.offered));
    print_bytes(f, "RX", t.rx, t.seconds, out);
    print_bytes(f, "TX", t.tx, t.seconds, out);
}

void
report_mutilate(const struct result *r, const struct options *o, FILE *out)
{
    /* Which parsers look for. */
    static const struct report_names names = {"#type", "read", "update", "op_q"};
    struct report_table table;
    const struct report_form form = report_form_of(o);
    report_table_of(r, o, REPORT_ALL, &table);
    report_print_table(&form, &table, &names, out);
    print_totals(&form, r, out);
}
