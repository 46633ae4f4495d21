/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

#include <math.h>

#include "loadgen/measure/phases.h"
#include "loadgen/measure/steady.h"
#include "loadgen/report/report_agents.h"
#include "loadgen/report/report_many.h"
#include "loadgen/report/report_sizes.h"
#include "loadgen/report/report_stats.h"

#define MEGABYTE REPORT_MEGABYTE
#define NS_PER_US REPORT_NS_PER_US

#define SAMPLES_BEYOND_MIN 10 /* for a percentile that is more than noise */

/* By what was sent; left out when it is what the table shows already. */
static void
print_ops(const struct tally *t, FILE *out)
{
    uint64_t others = 0;
    for (unsigned v = 0; v < CODEC_VERBS; v++) {
        others += v == CODEC_GET || v == CODEC_SET ? 0 : ctr_get(&t->ops[v]);
    }
    if (others == 0) {
        return;
    }
    const char *before = "Requests =";
    for (unsigned v = 0; v < CODEC_VERBS; v++) {
        uint64_t n = ctr_get(&t->ops[v]), none = ctr_get(&t->no_effect[v]);
        if (n > 0) {
            fprintf(out, "%s %s %ju", before, codec_verb_name(v), (uintmax_t)n);
            if (none > 0) {
                fprintf(out, " (%ju without effect)", (uintmax_t)none);
            }
            before = ",";
        }
    }
    fputc('\n', out);
}

/* Of a class whose misses are followed by something; left out when none was. */
static void
print_misses(const struct tally *t, FILE *out)
{
    uint64_t won = ctr_get(&t->won), waited = ctr_get(&t->waited);
    uint64_t stale = ctr_get(&t->stale), unfilled = ctr_get(&t->unfilled);
    if (ctr_get(&t->filled) + unfilled > 0) {
        fprintf(out, "After misses = %ju sets (%ju left out)\n",
                (uintmax_t)ctr_get(&t->filled), (uintmax_t)unfilled);
    }
    if (won + waited + stale > 0) {
        fprintf(out, "Leases = %ju won, %ju waited for (%ju given up), %ju stale hits\n",
                (uintmax_t)won, (uintmax_t)waited, (uintmax_t)ctr_get(&t->given_up),
                (uintmax_t)stale);
    }
}

static void
print_pair(const struct result *r, enum tally_from from, double q, FILE *out)
{
    struct quantile value =
        result_quantile(r->all[from], r->total.waits, result_censored(&r->total), q);
    fprintf(out, "%s%.1f us", value.is_bound ? ">" : "", (double)value.ns / NS_PER_US);
}

static void
print_gap(const struct result *r, FILE *out)
{
    static const struct {
        const char *name;
        double q;
    } points[] = {{"p50", .5}, {"p99", .99}, {"p999", .999}};
    fprintf(out, "Latency from intended start / from issue =");
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        fprintf(out, "%s %s ", i > 0 ? "," : "", points[i].name);
        print_pair(r, FROM_INTENDED, points[i].q, out);
        fputs(" / ", out);
        print_pair(r, FROM_ISSUE, points[i].q, out);
    }
    fputc('\n', out);
}

static void
print_arrivals(const struct result *r, FILE *out)
{
    struct gaps_apart g = result_gaps(r);
    if (g.is_known) {
        fprintf(out,
                "Gaps of %u = SCV %.3f sent, %.3f meant, %.2f%% apart (K-S %.4f, p "
                "%.2g)\n",
                r->gap_each, g.scv_issued, g.scv_intended, 100 * g.apart, g.ks, g.p);
    }
}

static void
print_bound(struct quantile q, bool is_known, FILE *out)
{
    if (is_known) {
        fprintf(out, "%s%.1f", q.is_bound ? ">" : "", (double)q.ns / NS_PER_US);
    } else {
        fputc('?', out); /* beyond all that was measured */
    }
}

/* How sure the percentiles are, or how long it would take to know. */
static void
print_confidence(const struct result *r, FILE *out)
{
    static const struct {
        const char *name;
        double q;
    } points[] = {{"p95", .95}, {"p99", .99}, {"p999", .999}};
    const struct hist *h = r->all[FROM_INTENDED], *waits = r->total.waits;
    uint64_t censored = result_censored(&r->total);
    if (r->series == NULL || hist_count(h) + censored == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct ci ci = series_ci(r->series, points[i].q);
        fprintf(out, "%s 95%% interval = ", points[i].name);
        if (!ci.is_known) {
            if (ci.needed > 0) {
                fprintf(out, "n/a (needs %.1f s)\n", ci.needed * r->elapsed_s);
            } else {
                fputs("n/a\n", out);
            }
            continue;
        }
        print_bound(result_quantile(h, waits, censored, ci.low), true, out);
        fputs(" .. ", out);
        print_bound(result_quantile(h, waits, censored, ci.high), ci.high < 1, out);
        fprintf(out,
                " us (worth %.0f independent requests; +-10%% of the tail in %.1f s)\n",
                ci.effective, ci.enough * r->elapsed_s);
    }
}

static void
print_intervals(const struct result *r, FILE *out)
{
    fprintf(out, "#interval %9s %10s %9s %9s %9s %7s %7s\n", "seconds", "qps", "p50",
            "p95", "p99", "hits%", "errors");
    for (unsigned i = 0; r->series != NULL && i < r->series->rows_len; i++) {
        const struct series_row *row = &r->series->rows[i];
        fprintf(out, "interval  %9.2f %10.1f %9.1f %9.1f %9.1f %7.2f %7ju", row->start_s,
                result_ratio((double)row->requests, row->length_s),
                (double)row->p50 / NS_PER_US, (double)row->p95 / NS_PER_US,
                (double)row->p99 / NS_PER_US,
                100 * result_ratio((double)row->hits, (double)row->keys),
                (uintmax_t)row->errors);
        if (row->lost > 0) {
            fprintf(out, " (agents lost: %u)", row->lost);
        }
        fputc('\n', out);
    }
}

static void
print_pace(const struct result *r, FILE *out)
{
    const struct tally *t = &r->total;
    double s = r->elapsed_s;
    double offered = (double)ctr_get(&t->offered);
    double good = (double)ctr_get(&t->good);
    if (r->classes_len > 1) {
        return; /* each class has a pace of its own */
    }
    if (!r->is_open) {
        fprintf(out, "Closed loop: no rate was offered, latency is from issue\n");
        return;
    }
    fprintf(out, "Offered = %.1f/s (%s loop, %.0f asked for)\n", result_ratio(offered, s),
            r->mode != NULL ? r->mode : "open", r->qps);
    fprintf(out, "Achieved = %.1f/s (%.2f%% of offered)\n", result_ratio(good, s),
            100 * result_ratio(good, offered));
    print_gap(r, out);
    fprintf(
        out,
        "Adherence = %.2f%% sent within 5 us, %.2f%% within 50 us, %.2f%% within 1 ms\n",
        100 * result_ratio((double)ctr_get(&t->within[WITHIN_5US]), offered),
        100 * result_ratio((double)ctr_get(&t->within[WITHIN_50US]), offered),
        100 * result_ratio((double)ctr_get(&t->within[WITHIN_1MS]), offered));
    fprintf(out,
            "Lag p50 = %.1f us, p99 = %.1f us, max = %.1f us; the client's own p99 = "
            "%.1f us\n",
            (double)hist_quantile(t->lag, .5) / NS_PER_US,
            (double)hist_quantile(t->lag, .99) / NS_PER_US,
            (double)hist_max(t->lag) / NS_PER_US,
            (double)hist_quantile(t->late, .99) / NS_PER_US);
    print_arrivals(r, out);
}

/* What is left of it when the client's own share is taken out. */
static void
print_wire(const struct result *r, FILE *out)
{
    const struct hist *wire = r->total.wire, *issue = r->all[FROM_ISSUE];
    if (hist_count(wire) > 0) {
        fprintf(out,
                "Between the time stamps of request and reply = p50 %.1f us, p99 %.1f us "
                "of %ju requests; from issue p50 %.1f us, p99 %.1f us\n",
                (double)hist_quantile(wire, .5) / NS_PER_US,
                (double)hist_quantile(wire, .99) / NS_PER_US, (uintmax_t)hist_count(wire),
                (double)hist_quantile(issue, .5) / NS_PER_US,
                (double)hist_quantile(issue, .99) / NS_PER_US);
    }
}

void
report_errors(const struct tally *t, FILE *out)
{
    fprintf(out, "Errors = %ju", (uintmax_t)tally_error_sum(t));
    const char *before = " (";
    for (unsigned e = 0; e < TALLY_ERRORS; e++) {
        uint64_t n = ctr_get(&t->errors[e]);
        if (n > 0) {
            fprintf(out, "%s%s %ju", before, tally_error_name(e), (uintmax_t)n);
            before = ", ";
        }
    }
    fprintf(out, "%s\n", tally_error_sum(t) > 0 ? ")" : "");
}

static void
print_without_answer(const struct tally *t, FILE *out)
{
    fprintf(out,
            "Without answer = %ju outstanding at the end, %ju never sent, %ju lost\n",
            (uintmax_t)ctr_get(&t->unanswered), (uintmax_t)ctr_get(&t->unsent),
            (uintmax_t)ctr_get(&t->lost));
}

/* Of keys; and what the schedule of a run cannot explain when it changes. */
static void
print_hits(const struct result *r, FILE *out)
{
    const struct tally *t = &r->total;
    double values[SERIES_PIECES];
    if (ctr_get(&t->keys) == 0) {
        return;
    }
    fprintf(out, "Hit ratio = %.2f%%",
            100 * result_ratio((double)ctr_get(&t->hits), (double)ctr_get(&t->keys)));
    if (r->hits_expected >= 0) {
        fprintf(out, " (%.2f%% expected)", 100 * r->hits_expected);
    }
    unsigned n =
        r->series != NULL ? series_values(r->series, SERIES_HIT_RATIO, values) : 0;
    if (n > 1) {
        struct drift d = drift_of(values, n);
        fprintf(out, ", %.2f%% in the first half, %.2f%% in the second", 100 * d.first,
                100 * d.second);
    }
    fputc('\n', out);
}

/* On each connection, when one more is sent. */
static void
print_outstanding(const struct result *r, FILE *out)
{
    const struct hist *h = r->total.outstanding;
    if (hist_count(h) > 0) {
        fprintf(out, "Outstanding = p50 %ju, p99 %ju, max %ju on a connection\n",
                (uintmax_t)hist_quantile(h, .5), (uintmax_t)hist_quantile(h, .99),
                (uintmax_t)hist_max(h));
    }
}

/* Only when there is something to say: connections usually stay. */
static void
print_connections(const struct result *r, FILE *out)
{
    const struct tally *t = &r->total;
    if (ctr_get(&t->closed) > 0) {
        fprintf(out, "Connections = %ju opened, %ju closed by intent\n",
                (uintmax_t)ctr_get(&t->opened), (uintmax_t)ctr_get(&t->closed));
    }
    if (ctr_get(&t->unserved) > 0) {
        fprintf(
            out,
            "Connections without any answer = %ju of %ju opened: more than the server "
            "admits?\n",
            (uintmax_t)ctr_get(&t->unserved), (uintmax_t)ctr_get(&t->opened));
    }
}

static void
print_warmup(const struct result_warmup *w, FILE *out)
{
    if (w->was_made && w->has_settled) {
        fprintf(out, "Warm-up = %.2f s, steady after %.2f s of it (MSER-5)\n", w->seconds,
                w->cut_s);
    } else if (w->was_made) {
        fprintf(out, "Warm-up = %.2f s, not steady by then (MSER-5)\n", w->seconds);
    }
}

static void
print_phases(const struct result *r, FILE *out)
{
    const char *before = "Phases = ";
    for (unsigned i = 0; i < PHASES; i++) {
        const struct result_span *p = &r->phases[i];
        if (p->stop_s > p->start_s) {
            fprintf(out, "%s%s %.3f s", before, phase_name(i), p->stop_s - p->start_s);
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? "\n" : "", out);
}

/* Only when there is something to say. */
static void
print_waits(const struct result *r, FILE *out)
{
    double most = 0;
    for (unsigned i = 0; i < r->threads; i++) {
        most = fmax(most, result_ratio(r->costs[i].wait_s, r->costs[i].elapsed_s));
    }
    if (most > 0 || r->steal > 0) {
        fprintf(out, "Waited for a CPU = %.1f%% of the time at most, stolen = %.1f%%\n",
                100 * most, 100 * r->steal);
    }
}

static void
print_cost(const struct result *r, FILE *out)
{
    fputs("Client CPU =", out);
    for (unsigned i = 0; i < r->threads; i++) {
        fprintf(out, "%s %.1f%%", i > 0 ? "," : "", 100 * result_busy(&r->costs[i]));
    }
    fputs(" of a core each, polling left out\n", out);
    print_waits(r, out);
}

/* Records that are missing are explained by what the servers threw out. */
static void
print_evictions(const struct result *r, FILE *out)
{
    const struct server_evictions *e = &r->evictions;
    bool misses = result_misses_records(r);
    bool has_loading = e->knows_loading && e->loading > 0;
    if (!misses && !has_loading) {
        return;
    }
    fputs(misses ? "Note: misses, though all records were stored before" : "Note", out);
    if (has_loading) {
        fprintf(out, ": %.0f items were evicted while they were stored", e->loading);
    }
    if (misses && e->is_known) {
        fprintf(out, "%s %.0f evictions counted by the servers in all",
                has_loading ? "," : ":", e->total);
    } else if (misses && !has_loading) {
        fputs(": evicted?", out);
    }
    fputc('\n', out);
}

static void
print_notes(const struct result *r, const struct options *o, FILE *out)
{
    const struct tally *t = &r->total;
    if (r->is_local) {
        fputs("Note: client and server share this machine's CPUs\n", out);
    }
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        double beyond = (double)(hist_count(r->all[FROM_INTENDED]) + result_censored(t)) *
                        (1 - o->percentiles[i]);
        if (o->percentiles[i] < 1 && beyond < SAMPLES_BEYOND_MIN - 0.5) {
            char name[REPORT_NAME_MAX];
            report_column_name(o->percentiles[i], name);
            fprintf(out, "Note: fewer than %d requests lie beyond %s: run longer\n",
                    SAMPLES_BEYOND_MIN, name);
            break;
        }
    }
    if (hist_overflow(r->all[FROM_INTENDED]) > 0) {
        fputs("Note: latencies above 100 s were counted as 100 s\n", out);
    }
}

static void
print_objectives(const struct result *r, FILE *out)
{
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct result *c = &r->classes[i];
        char text[SLO_TEXT_MAX];
        if (c->slo.percent > 0) {
            slo_describe(&c->slo, text);
            fprintf(out, "Objective %s%s%s = %s, %s%.1f us\n", text,
                    r->classes_len > 1 ? " of " : "", r->classes_len > 1 ? c->name : "",
                    c->is_slo_met ? "met" : "missed", c->slo_value.is_bound ? ">" : "",
                    (double)c->slo_value.ns / NS_PER_US);
        }
    }
}

/* Whether each class has as many. */
static bool
has_answers(const struct result *r, uint64_t wanted)
{
    for (unsigned c = 0; c < r->classes_len; c++) {
        const struct result *class = &r->classes[c];
        if (!class->is_antagonist && class->series != NULL &&
            until_answers(class->series) < wanted) {
            return false;
        }
    }
    return true;
}

/* The widest of all classes is what counts. */
static void
print_until(const struct result *r, FILE *out)
{
    for (unsigned i = 0; r->until != NULL && i < r->until->count; i++) {
        char name[REPORT_NAME_MAX];
        double widest = 0, q = r->until->wants[i].q, width = r->until->wants[i].width;
        for (unsigned c = 0; c < r->classes_len; c++) {
            const struct result *class = &r->classes[c];
            widest = class->is_antagonist || class->series == NULL
                         ? widest
                         : fmax(widest, until_width(class->series, q));
        }
        report_column_name(q, name);
        fprintf(out, "Until %s within %g%% = %s after %.2f s", name, 100 * width,
                widest <= width ? "reached" : "not reached", r->elapsed_s);
        if (isfinite(widest)) {
            fprintf(out, ", %.2f%%", 100 * widest);
        }
        fputc('\n', out);
    }
    if (r->until != NULL && r->until->answers > 0) {
        fprintf(
            out, "Until %ju answers = %s after %.2f s\n", (uintmax_t)r->until->answers,
            has_answers(r, r->until->answers) ? "reached" : "not reached", r->elapsed_s);
    }
}

/* The letters that end the table are not in the names. */
static void
print_env(const struct result *r, const struct options *o, FILE *out)
{
    for (unsigned i = 0; o->shows_env && r->env != NULL && i < r->env->count; i++) {
        fprintf(out, "Env %s = %s\n", r->env->facts[i].name, r->env->facts[i].value);
    }
    if (o->shows_env) {
        report_settings_text(r->server_settings, (const char *const *)o->servers, out);
    }
}

/* Smallest, median and largest of the connections. */
static void
print_range(const struct evenness *s, enum evenness_of what, FILE *out)
{
    struct evenness_range r = evenness_range(s, what);
    double unit = what == EVENNESS_REQUESTS ? 1 : NS_PER_US;
    int digits = what == EVENNESS_REQUESTS ? 0 : 1;
    fprintf(out, "%.*f / %.*f / %.*f", digits, (double)r.min / unit, digits,
            (double)r.median / unit, digits, (double)r.max / unit);
}

/* Left out where there is one only. Latencies are from issue. */
static void
print_evenness(const struct result *r, const struct options *o, FILE *out)
{
    const struct evenness *s = r->evenness;
    for (unsigned i = 0; s != NULL && s->servers_len > 1 && i < s->servers_len; i++) {
        const struct hist *h = s->servers[i];
        fprintf(out, "Server %s = %ju requests, p50 %.1f us, p99 %.1f us\n",
                o->servers[i], (uintmax_t)hist_count(h),
                (double)hist_quantile(h, .50) / NS_PER_US,
                (double)hist_quantile(h, .99) / NS_PER_US);
    }
    if (s != NULL && s->conns_len > 1) {
        fprintf(out, "Connections = %u, min / median / max: requests ", s->conns_len);
        print_range(s, EVENNESS_REQUESTS, out);
        fputs(", p50 ", out);
        print_range(s, EVENNESS_P50, out);
        fputs(" us, p99 ", out);
        print_range(s, EVENNESS_P99, out);
        fputs(" us\n", out);
    }
}

static void
print_class(const struct result *r, const struct options *o, unsigned i, FILE *out)
{
    const struct result *c = &r->classes[i];
    const struct lclass *l = &o->classes[i];
    const struct report_form form = report_form_of(o);
    /* Whoever looks for mutilate's rows is to find those of the run, and none of a class. */
    static const struct report_names names = {"#kind", "gets", "others", "on_way"};
    struct report_totals t = report_totals(c);
    struct report_table table;
    fprintf(out, "\nClass %s: %u x %jd connections, depth %jd\n", c->name, c->threads,
            (intmax_t)l->connections, (intmax_t)l->depth);
    report_table_of(r, o, i, &table);
    report_print_table(&form, &table, &names, out);
    fprintf(out, "Answered = %.1f/s (%.0f / %.1fs)\n", result_ratio(t.done, t.seconds),
            t.done, t.seconds);
    fprintf(out, "Misses = %.0f (%.1f%%)\n", t.misses,
            100 * result_ratio(t.misses, t.keys));
    print_ops(&c->total, out);
    print_misses(&c->total, out);
    print_pace(c, out);
    print_confidence(c, out);
    report_errors(&c->total, out);
    print_without_answer(&c->total, out);
    print_evenness(c, o, out);
}

/* One class is the whole run. */
static void
print_classes(const struct result *r, const struct options *o, FILE *out)
{
    for (unsigned i = 0; r->classes_len > 1 && i < r->classes_len; i++) {
        print_class(r, o, i, out);
    }
    fputs(r->classes_len > 1 ? "\n" : "", out);
}

/* mutilate's table and totals, which parsers look for, then what it does not have. */
static void
print_details(const struct result *r, const struct options *o, FILE *out)
{
    struct report_table table;
    const struct report_form form = report_form_of(o);
    report_table_of(r, o, REPORT_ALL, &table);
    fputc('\n', out);
    report_print_table(&form, &table, &report_mutilates, out);
    report_print_totals(&form, r, out);
    fputc('\n', out);
    print_ops(&r->total, out);
    print_misses(&r->total, out);
    print_pace(r, out);
    print_confidence(r, out);
    print_without_answer(&r->total, out);
    print_outstanding(r, out);
    print_hits(r, out);
    print_connections(r, out);
    print_evenness(r, o, out);
    print_classes(r, o, out);
    print_warmup(&r->warmup, out);
    print_phases(r, out);
    print_cost(r, out);
    fprintf(out, "Seed = %ju\n", (uintmax_t)o->seed);
    print_notes(r, o, out);
}

void
report_text(const struct result *r, const struct options *o, FILE *out)
{
    report_summary(r, o->verbose > 0, out);
    if (o->verbose > 0) {
        print_details(r, o, out);
    }
    print_evictions(r, out);
    print_wire(r, out);
    if (o->shows_intervals) {
        print_intervals(r, out);
    }
    report_sizes_text(&r->total, out);
    report_stats_text(r->server_stats, out);
    report_agents_text(r, out);
    print_objectives(r, out);
    print_until(r, out);
    print_env(r, o, out);
    if (r->search != NULL) {
        report_search_text(r->search, &o->goal, out);
    }
}
