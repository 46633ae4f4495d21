/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What comes of several runs: the rows of a scan, the answer of a search.
 */

#include "loadgen/report/report.h"

#include "loadgen/report/report_parts.h"

void
report_scan_head(const struct options *o, FILE *out)
{
    const struct report_form form = report_form_of(o);
    if (o->format == FORMAT_CSV) {
        report_csv_head(o, out);
    } else {
        report_head(&form, "#type", out);
        fprintf(out, " %*s %*s\n", form.width + 1, "QPS", form.width + 1, "target");
    }
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
    const ctr_t *done = table.counters->done;
    bool has_reads =
        ctr_get(&done[COUNTERS_READ]) > 0 || ctr_get(&done[COUNTERS_UPDATE]) == 0;
    const struct report_row *row =
        &table.rows[has_reads ? COUNTERS_READ : COUNTERS_UPDATE];
    report_row(&form, row->name, row, table.counters->waits, REPORT_NS_PER_US, out);
    fprintf(out, " %*.1f %*.0f\n", form.width + 1,
            result_ratio(report_totals(r).done, r->elapsed_s), form.width + 1, target);
}

static const char *const doubts[] = {
    [SEARCH_CUT_SHORT] = "there was no time for more runs: --search-budget",
    [SEARCH_DISAGREES] = "the runs do not agree where",
    [SEARCH_UNSURE] = "the runs are too short to be sure where: --time",
};

/* One sentence. */
static void
print_nothing_found(const struct search_answer *a, const char *goal, FILE *out)
{
    fprintf(out, "The search found no rate with %s: ", goal);
    if (!a->is_met && a->high == 0) {
        fputs(a->peak > 0 ? "it ended before the runs could tell of one"
                          : "no request was answered in a closed loop",
              out);
    } else if (!a->is_met && a->limit == 0 && a->bound == SEARCH_BY_LATENCY) {
        fprintf(out,
                "requests stayed unanswered at %.1f/s, so the latency of a low load is "
                "not known",
                a->high);
    } else if (!a->is_met) {
        fprintf(out, "the lowest tried, %.1f/s, missed it by %s", a->high,
                search_bound_names[a->bound]);
    } else if (a->high == 0) {
        fprintf(out, "it is %.1f/s or more, and %s", a->low, doubts[a->doubt]);
    } else {
        fprintf(out, "it is between %.1f/s and %.1f/s, and %s", a->low, a->high,
                doubts[a->doubt]);
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
        fprintf(out, "Limit = %.1f us\n", a.limit / REPORT_NS_PER_US);
    }
    fprintf(out, "Largest open-loop rate = %.1f/s\n", a.ceiling);
    fprintf(out, "QoS QPS = %.1f", a.qps);
    if (a.high > 0) {
        fprintf(out, " +- %.1f (%.1f to %.1f), bound by %s", (a.high - a.low) / 2, a.low,
                a.high, search_bound_names[a.bound]);
    } else {
        fprintf(out, " (no rate up to it missed the goal)");
    }
    fprintf(out, "%s%s\n", a.is_confirmed ? ", confirmed" : ", not confirmed",
            a.is_decided ? "" : ", undecided");
}

static void
write_points(struct json *j, const char *key, const struct search_point *points,
             unsigned count)
{
    static const char *const verdicts[] = {
        [SEARCH_MET] = "met", [SEARCH_MISSED] = "missed", [SEARCH_OPEN] = "open"};
    json_open(j, key, '[');
    for (unsigned i = 0; i < count; i++) {
        const struct search_point *p = &points[i];
        const struct search_outcome *o = &p->outcome;
        json_object_of(j, NULL, JSON("rate", p->rate), JSON("latency", o->value),
                       JSON("low", o->low), JSON("high", o->high), JSON("qps", o->qps),
                       JSON("achieved", o->achieved), JSON("errors", o->errors),
                       JSON("verdict", verdicts[p->verdict]),
                       JSON("missed_by", search_bound_names[p->bound]),
                       JSON_IF(p->runs > 0, JSON("runs", p->runs)),
                       JSON_IF(p->runs > 0, JSON("met", p->met)));
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
    json_put(j, json_of_text("goal", goal), JSON("limit", a.limit), JSON("met", a.is_met),
             JSON("found", a.is_found), JSON("decided", a.is_decided),
             JSON("confirmed", a.is_confirmed), JSON("qps", a.qps), JSON("low", a.low),
             JSON("high", a.high > 0 ? a.high : INFINITY),
             JSON("bound", search_bound_names[a.bound]), JSON("peak_qps", a.peak),
             JSON("largest_open_qps", a.ceiling), JSON("runs", a.probes),
             JSON("seconds", a.seconds));
    write_points(j, "tried", s->tried, s->tried_count);
    write_points(j, "confirmation", s->confirmed, s->confirmed_count);
    json_close(j, '}');
}
