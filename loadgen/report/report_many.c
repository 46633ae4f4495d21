/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What comes of several runs: the rows of a scan, the answer of a search.
 */
#include "loadgen/report/report_many.h"

#include "loadgen/report/report.h"

#define NS_PER_US 1e3

static const struct {
    const char *name;
    double q;
} columns[] = {
    {"5th", .05},  {"10th", .10}, {"50th", .50},  {"90th", .90},
    {"95th", .95}, {"99th", .99}, {"p999", .999}, {"p9999", .9999},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

void
report_scan_head(FILE *out)
{
    fprintf(out, "#type   %8s %8s %8s", "avg", "std", "min");
    for (size_t i = 0; i < COLUMNS; i++) {
        fprintf(out, " %8s", columns[i].name);
    }
    fprintf(out, " %8s %9s %9s\n", "max", "QPS", "target");
}

void
report_scan_row(const struct result *r, const struct options *o, double target, FILE *out)
{
    const struct tally *t = &r->total;
    enum tally_from from = o->from_issue ? FROM_ISSUE : FROM_INTENDED;
    bool has_reads =
        ctr_get(&t->done[TALLY_READ]) > 0 || ctr_get(&t->done[TALLY_UPDATE]) == 0;
    const struct hist *h = t->latency[from][has_reads ? TALLY_READ : TALLY_UPDATE];
    uint64_t censored = result_censored(t);
    fprintf(out, "%-7s %8.1f %8.1f %8.1f", has_reads ? "read" : "update",
            hist_mean(h) / NS_PER_US, hist_stddev(h) / NS_PER_US,
            (double)hist_min(h) / NS_PER_US);
    for (size_t i = 0; i < COLUMNS; i++) {
        struct quantile q = result_quantile(h, t->waits, censored, columns[i].q);
        fprintf(out, " %8.1f", (double)q.ns / NS_PER_US);
    }
    double done =
        (double)ctr_get(&t->done[TALLY_READ]) + (double)ctr_get(&t->done[TALLY_UPDATE]);
    fprintf(out, " %8.1f %9.1f %9.0f\n", (double)hist_max(h) / NS_PER_US,
            result_ratio(done, r->elapsed_s), target);
}

void
report_search_text(const struct search *s, const struct goal *g, FILE *out)
{
    char goal[200];
    struct search_answer a = search_answer(s);
    goal_describe(g, goal, sizeof goal);
    fprintf(out, "Search = %s, %u runs in %.1f s\n", goal, a.probes, a.seconds);
    if (g->limit_ns == 0) {
        fprintf(out, "Limit = %.1f us\n", a.limit / NS_PER_US);
    }
    fprintf(out, "Largest open-loop rate = %.1f/s\n", a.ceiling);
    if (!a.is_met) {
        fprintf(out, "QoS QPS = 0.0 (%.1f/s, the least rate tried, was missed by %s)\n",
                a.high, search_bound_name(a.bound));
        return;
    }
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
