/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What comes of several runs: the rows of a scan, the answer of a search.
 */
#include "loadgen/report/report_many.h"

#include "loadgen/report/report.h"

#define NS_PER_US 1e3

void
report_scan_head(const struct options *o, FILE *out)
{
    const struct report_form form = report_form_of(o);
    if (o->format == FORMAT_CSV) {
        report_csv_head(o, out);
        return;
    }
    report_head(&form, "#type", out);
    fprintf(out, " %*s %*s\n", form.width + 1, "QPS", form.width + 1, "target");
}

void
report_scan_row(const struct result *r, const struct options *o, double target, FILE *out)
{
    const struct report_form form = report_form_of(o);
    struct report_table table;
    if (o->format == FORMAT_CSV) {
        report_csv_rows(r, o, target, out);
        return;
    }
    report_table_of(r, o, REPORT_ALL, &table);
    const ctr_t *done = table.tally->done;
    bool has_reads = ctr_get(&done[TALLY_READ]) > 0 || ctr_get(&done[TALLY_UPDATE]) == 0;
    const struct report_row *row = &table.rows[has_reads ? TALLY_READ : TALLY_UPDATE];
    report_row(&form, row->name, row, table.tally->waits, NS_PER_US, out);
    fprintf(out, " %*.1f %*.0f\n", form.width + 1,
            result_ratio(report_totals(r).done, r->elapsed_s), form.width + 1, target);
}

/* One sentence. */
static void
print_nothing_found(const struct search_answer *a, const char *goal, FILE *out)
{
    fprintf(out, "The search found no rate with %s: ", goal);
    if (!a->is_met) {
        fprintf(out, "the lowest tried, %.1f/s, missed it by %s", a->high,
                search_bound_name(a->bound));
    } else {
        fprintf(out, "it is between %.1f/s and %.1f/s, and the runs do not agree where",
                a->low, a->high);
    }
    fprintf(out, " (%u runs in %.1f s).\n", a->probes, a->seconds);
}

void
report_search_text(const struct search *s, const struct goal *g, FILE *out)
{
    char goal[200];
    struct search_answer a = search_answer(s);
    goal_describe(g, goal, sizeof goal);
    if (!a.is_found) {
        print_nothing_found(&a, goal, out);
        return;
    }
    fprintf(out, "Search = %s, %u runs in %.1f s\n", goal, a.probes, a.seconds);
    if (g->limit_ns == 0) {
        fprintf(out, "Limit = %.1f us\n", a.limit / NS_PER_US);
    }
    fprintf(out, "Largest open-loop rate = %.1f/s\n", a.ceiling);
    fprintf(out, "QoS QPS = %.1f", a.qps);
    if (a.high > 0) {
        fprintf(out, " +- %.1f (%.1f to %.1f), bound by %s", (a.high - a.low) / 2, a.low,
                a.high, search_bound_name(a.bound));
    } else {
        fprintf(out, " (no rate up to it missed the goal)");
    }
    fprintf(out, "%s%s\n", a.is_confirmed ? ", confirmed" : ", not confirmed",
            a.is_decided ? "" : ", undecided");
}

static const char *const verdict_names[] = {
    [SEARCH_MET] = "met",
    [SEARCH_MISSED] = "missed",
    [SEARCH_OPEN] = "open",
};

static void
write_points(struct json *j, const char *key, const struct search_point *points,
             unsigned count)
{
    json_open(j, key, '[');
    for (unsigned i = 0; i < count; i++) {
        const struct search_point *p = &points[i];
        json_open(j, NULL, '{');
        json_number(j, "rate", p->rate);
        json_number(j, "latency", p->outcome.value);
        json_number(j, "low", p->outcome.low);
        json_number(j, "high", p->outcome.high);
        json_number(j, "qps", p->outcome.qps);
        json_number(j, "achieved", p->outcome.achieved);
        json_number(j, "errors", p->outcome.errors);
        json_text(j, "verdict", verdict_names[p->verdict]);
        json_text(j, "missed_by", search_bound_name(p->bound));
        if (p->runs > 0) {
            json_u64(j, "runs", p->runs);
            json_u64(j, "met", p->met);
        }
        json_close(j, '}');
    }
    json_close(j, ']');
}

void
report_search_json(const struct search *s, const struct goal *g, struct json *j)
{
    char goal[200];
    struct search_answer a = search_answer(s);
    goal_describe(g, goal, sizeof goal);
    json_open(j, "search", '{');
    json_text(j, "goal", goal);
    json_number(j, "limit", a.limit);
    json_bool(j, "met", a.is_met);
    json_bool(j, "found", a.is_found);
    json_bool(j, "decided", a.is_decided);
    json_bool(j, "confirmed", a.is_confirmed);
    json_number(j, "qps", a.qps);
    json_number(j, "low", a.low);
    if (a.high > 0) {
        json_number(j, "high", a.high);
    } else {
        json_nothing(j, "high");
    }
    json_text(j, "bound", search_bound_name(a.bound));
    json_number(j, "peak_qps", a.peak);
    json_number(j, "largest_open_qps", a.ceiling);
    json_u64(j, "runs", a.probes);
    json_number(j, "seconds", a.seconds);
    write_points(j, "tried", s->tried, s->tried_count);
    write_points(j, "confirmation", s->confirmed, s->confirmed_count);
    json_close(j, '}');
}
