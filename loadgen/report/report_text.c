/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

#include <math.h>

#include "loadgen/measure/steady.h"
#include "loadgen/report/report_parts.h"

#define SAMPLES_BEYOND_MIN 10 /* for a percentile that is more than noise */

/* The counter as %ju takes it. */
#define COUNT(field) ((uintmax_t)ctr_get(&t->field))

/* By what was sent; left out when it is what the table shows already. */
static void
print_ops(const struct counters *t, FILE *out)
{
    uint64_t others = 0;
    for (unsigned v = 0; v < CODEC_VERBS; v++) {
        others += v == CODEC_GET || v == CODEC_SET ? 0 : ctr_get(&t->ops[v]);
    }
    const char *before = "Requests =";
    for (unsigned v = 0; v < CODEC_VERBS && others > 0; v++) {
        if (COUNT(ops[v]) > 0) {
            fprintf(out, "%s %s %ju", before, codec_verb_names[v], COUNT(ops[v]));
            if (COUNT(no_effect[v]) > 0) {
                fprintf(out, " (%ju without effect)", COUNT(no_effect[v]));
            }
            before = ",";
        }
    }
    fputs(others > 0 ? "\n" : "", out);
}

/* Of a class whose misses are followed by something; left out when none was. */
static void
print_misses(const struct counters *t, FILE *out)
{
    if (COUNT(filled) + COUNT(unfilled) > 0) {
        fprintf(out, "After misses = %ju sets (%ju left out)\n", COUNT(filled),
                COUNT(unfilled));
    }
    if (COUNT(won) + COUNT(waited) + COUNT(stale) > 0) {
        fprintf(out, "Leases = %ju won, %ju waited for (%ju given up), %ju stale hits\n",
                COUNT(won), COUNT(waited), COUNT(given_up), COUNT(stale));
    }
}

static void
print_gap(const struct result *r, FILE *out)
{
    static const struct {
        const char *name;
        double q;
    } points[] = {{" p50", .5}, {", p99", .99}, {", p999", .999}};
    if (hist_count(r->all[r->from]) + result_censored(&r->total) == 0) {
        return; /* "not known" is in the summary */
    }
    fputs("Latency from intended start / from issue =", out);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        struct quantile intended = result_at(r, FROM_INTENDED, points[i].q);
        struct quantile issue = result_at(r, FROM_ISSUE, points[i].q);
        fprintf(out, "%s %s%.1f us / %s%.1f us", points[i].name,
                intended.is_bound ? ">" : "", report_us(intended.ns),
                issue.is_bound ? ">" : "", report_us(issue.ns));
    }
    fputc('\n', out);
}

/* "?": beyond all that was measured. */
static void
print_bound(struct quantile q, bool is_known, const char *after, FILE *out)
{
    if (is_known) {
        fprintf(out, "%s%.1f%s", q.is_bound ? ">" : "", report_us(q.ns), after);
    } else {
        fprintf(out, "?%s", after);
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
    uint64_t all = hist_count(r->all[FROM_INTENDED]) + result_censored(&r->total);
    for (size_t i = 0;
         r->series != NULL && all > 0 && i < sizeof points / sizeof points[0]; i++) {
        struct ci ci = series_ci(r->series, points[i].q);
        fprintf(out, "%s 95%% interval = ", points[i].name);
        if (ci.is_known) {
            print_bound(result_at(r, FROM_INTENDED, ci.low), true, " .. ", out);
            print_bound(result_at(r, FROM_INTENDED, ci.high), ci.high < 1, " us", out);
            fprintf(out,
                    " (worth %.0f independent requests; +-10%% of the tail in %.1f s)\n",
                    ci.effective, ci.enough * r->elapsed_s);
        } else if (ci.needed > 0) {
            fprintf(out, "n/a (needs %.1f s)\n", ci.needed * r->elapsed_s);
        } else {
            fputs("n/a\n", out);
        }
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
                result_ratio((double)row->requests, row->length_s), report_us(row->p50),
                report_us(row->p95), report_us(row->p99),
                report_percent((double)row->hits, (double)row->keys),
                (uintmax_t)row->errors);
        if (row->lost > 0) {
            fprintf(out, " (agents lost: %u)", row->lost);
        }
        fputc('\n', out);
    }
}

/* Of several classes each has a pace of its own. */
static void
print_pace(const struct result *r, FILE *out)
{
    const struct counters *t = &r->total;
    double offered = report_count(&t->offered), achieved = (double)result_achieved(r);
    struct gaps_apart g = result_gaps(r);
    if (r->classes_len > 1) {
        return;
    }
    if (!r->is_open) {
        fputs("Closed loop: no rate was offered, latency is from issue\n", out);
        return;
    }
    fprintf(out, "Offered = %.1f/s (%s loop, %.0f asked for)\n",
            result_ratio(offered, r->elapsed_s), r->mode != NULL ? r->mode : "open",
            r->qps);
    fprintf(out, "Achieved = %.1f/s (%.2f%% of offered)\n",
            result_ratio(achieved, r->elapsed_s), report_percent(achieved, offered));
    print_gap(r, out);
    fprintf(out,
            "Adherence = %.2f%% sent within 5 us, %.2f%% within 50 us, %.2f%% within 1 "
            "ms\n",
            report_percent(report_count(&t->within[WITHIN_5US]), offered),
            report_percent(report_count(&t->within[WITHIN_50US]), offered),
            report_percent(report_count(&t->within[WITHIN_1MS]), offered));
    fprintf(out,
            "Lag p50 = %.1f us, p99 = %.1f us, max = %.1f us; the client's own p99 = "
            "%.1f us\n",
            report_us_at(t->lag, .5), report_us_at(t->lag, .99),
            report_us(hist_max(t->lag)), report_us_at(t->late, .99));
    if (g.is_known) {
        fprintf(out,
                "Gaps of %u = SCV %.3f sent, %.3f meant, %.2f%% apart (K-S %.4f, p "
                "%.2g)\n",
                r->gap_each, g.scv_issued, g.scv_intended, 100 * g.apart, g.ks, g.p);
    }
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
                report_us_at(wire, .5), report_us_at(wire, .99),
                (uintmax_t)hist_count(wire), report_us_at(issue, .5),
                report_us_at(issue, .99));
    }
}

void
report_errors(const struct counters *t, FILE *out)
{
    fprintf(out, "Errors = %ju", (uintmax_t)counters_error_sum(t));
    const char *before = " (";
    for (unsigned e = 0; e < COUNTERS_ERRORS; e++) {
        if (COUNT(errors[e]) > 0) {
            fprintf(out, "%s%s %ju", before, counters_error_names[e], COUNT(errors[e]));
            before = ", ";
        }
    }
    fprintf(out, "%s\n", before[0] == ',' ? ")" : "");
}

static void
print_without_answer(const struct counters *t, FILE *out)
{
    fprintf(out,
            "Without answer = %ju outstanding at the end, %ju never sent, %ju lost\n",
            (uintmax_t)counters_sum(t->unanswered), COUNT(unsent),
            (uintmax_t)counters_sum(t->lost));
}

/* Of keys; and what the schedule of a run cannot explain when it changes. */
static void
print_hits(const struct result *r, FILE *out)
{
    double halves[2] = {0, 0};
    double keys = report_count(&r->total.keys), hits = report_count(&r->total.hits);
    if (keys == 0) {
        return;
    }
    fprintf(out, "Hit ratio = %.2f%%", report_percent(hits, keys));
    if (r->hits_expected >= 0) {
        fprintf(out, " (%.2f%% expected)", 100 * r->hits_expected);
    }
    if (r->series != NULL && series_hits_of_halves(r->series, halves)) {
        fprintf(out, ", %.2f%% in the first half, %.2f%% in the second", 100 * halves[0],
                100 * halves[1]);
    }
    fputc('\n', out);
}

/* Only when there is something to say: connections usually stay. */
static void
print_connections(const struct counters *t, FILE *out)
{
    if (COUNT(closed) > 0) {
        fprintf(out, "Connections = %ju opened, %ju closed by intent\n", COUNT(opened),
                COUNT(closed));
    }
    if (COUNT(unserved) > 0) {
        fprintf(out,
                "Connections without any answer = %ju of %ju opened: more than the "
                "server admits?\n",
                COUNT(unserved), COUNT(opened));
    }
}

/* On each connection, when one more is sent. */
static void
print_outstanding(const struct hist *h, FILE *out)
{
    if (hist_count(h) > 0) {
        fprintf(out, "Outstanding = p50 %ju, p99 %ju, max %ju on a connection\n",
                (uintmax_t)hist_quantile(h, .5), (uintmax_t)hist_quantile(h, .99),
                (uintmax_t)hist_max(h));
    }
}

static void
print_phases(const struct result *r, FILE *out)
{
    const struct result_warmup *w = &r->warmup;
    const char *before = "Phases = ";
    if (w->was_made && w->has_settled) {
        fprintf(out, "Warm-up = %.2f s, steady after %.2f s of it (MSER-5)\n", w->seconds,
                w->cut_s);
    } else if (w->was_made) {
        fprintf(out, "Warm-up = %.2f s, not steady by then (MSER-5)\n", w->seconds);
    }
    for (unsigned i = 0; i < PHASES; i++) {
        const struct result_span *p = &r->phases[i];
        if (p->stop_s > p->start_s) {
            fprintf(out, "%s%s %.3f s", before, result_phase_names[i],
                    p->stop_s - p->start_s);
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? "\n" : "", out);
}

/* Of the threads; what they waited only when there is something to say. */
static void
print_cost(const struct result *r, FILE *out)
{
    double most = result_longest_wait(r);
    fputs("Client CPU =", out);
    for (unsigned i = 0; i < r->threads; i++) {
        fprintf(out, "%s %.1f%%", i > 0 ? "," : "", 100 * result_busy(&r->costs[i]));
    }
    fputs(" of a core each, polling left out\n", out);
    if (most > 0 || r->steal > 0) {
        fprintf(out, "Waited for a CPU = %.1f%% of the time at most, stolen = %.1f%%\n",
                100 * most, 100 * r->steal);
    }
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
    const struct hist *h = r->all[FROM_INTENDED];
    double all = (double)(hist_count(h) + result_censored(&r->total));
    if (r->is_local) {
        fputs("Note: client and server share this machine's CPUs\n", out);
    }
    for (unsigned i = 0; i < o->percentiles_len; i++) {
        double q = o->percentiles[i];
        if (q < 1 && all * (1 - q) < SAMPLES_BEYOND_MIN - 0.5) {
            char name[OPTIONS_NAME_MAX];
            options_percentile_name(q, name);
            fprintf(out, "Note: fewer than %d requests lie beyond %s: run longer\n",
                    SAMPLES_BEYOND_MIN, name);
            break;
        }
    }
    if (hist_overflow(h) > 0) {
        fputs("Note: latencies above 100 s were counted as 100 s\n", out);
    }
}

static void
print_objectives(const struct result *r, FILE *out)
{
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct result *c = &r->classes[i];
        char text[OBJECTIVE_TEXT_MAX];
        if (c->slo.percent > 0) {
            objective_describe(&c->slo, text);
            fprintf(out, "Objective %s%s%s = ", text, r->classes_len > 1 ? " of " : "",
                    r->classes_len > 1 ? c->name : "");
            if (!c->is_slo_known) {
                fprintf(out, "not known: that takes %ju requests at least\n",
                        (uintmax_t)c->slo_needs);
                continue;
            }
            fprintf(out, "%s, %s%.1f us\n", c->is_slo_met ? "met" : "missed",
                    c->slo_value.is_bound ? ">" : "", report_us(c->slo_value.ns));
        }
    }
}

/* A class that the run goes on for. */
static bool
counts(const struct result *class)
{
    return !class->is_antagonist && class->series != NULL;
}

double
report_until_width(const struct result *r, double q)
{
    double widest = 0;
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct result *class = &r->classes[i];
        widest = counts(class) ? fmax(widest, until_width(class->series, q)) : widest;
    }
    return widest;
}

/* Each class has to have the answers. */
static void
print_until(const struct result *r, FILE *out)
{
    const struct until *u = r->until;
    bool has_answers = true;
    for (unsigned i = 0; u != NULL && i < u->count; i++) {
        char name[OPTIONS_NAME_MAX];
        double q = u->wants[i].q, width = u->wants[i].width;
        double widest = report_until_width(r, q);
        bool is_reached = r->is_until_met || widest <= width;
        options_percentile_name(q, name);
        fprintf(out, "Until %s within %g%% = %s after %.2f s", name, 100 * width,
                is_reached ? "reached" : "not reached", r->elapsed_s);
        if (isfinite(widest)) {
            fprintf(out, ", %.2f%%%s", 100 * widest,
                    is_reached && widest > width ? " with the last replies" : "");
        }
        fputc('\n', out);
    }
    for (unsigned c = 0; u != NULL && c < r->classes_len; c++) {
        has_answers = has_answers && (!counts(&r->classes[c]) ||
                                      until_answers(r->classes[c].series) >= u->answers);
    }
    if (u != NULL && u->answers > 0) {
        fprintf(out, "Until %ju answers = %s after %.2f s\n", (uintmax_t)u->answers,
                r->is_until_met || has_answers ? "reached" : "not reached", r->elapsed_s);
    }
}

static void
print_env(const struct result *r, const struct options *o, FILE *out)
{
    for (unsigned i = 0; o->shows_env && r->env != NULL && i < r->env->count; i++) {
        report_fact(NULL, r->env->facts[i].name, r->env->facts[i].value, out);
    }
    if (o->shows_env) {
        report_settings_text(r->server_settings, (const char *const *)o->servers, out);
    }
}

/* Smallest, median and largest of the connections. */
static void
print_range(const struct evenness *s, enum evenness_of what, const char *before,
            const char *after, FILE *out)
{
    struct evenness_range r = evenness_range(s, what);
    double unit = what == EVENNESS_REQUESTS ? 1 : REPORT_NS_PER_US;
    int digits = what == EVENNESS_REQUESTS ? 0 : 1;
    fprintf(out, "%s%.*f / %.*f / %.*f%s", before, digits, (double)r.min / unit, digits,
            (double)r.median / unit, digits, (double)r.max / unit, after);
}

/* Left out where there is one only. Latencies are from issue. */
static void
print_evenness(const struct result *r, const struct options *o, FILE *out)
{
    const struct evenness *s = r->evenness;
    for (unsigned i = 0; s != NULL && s->servers_len > 1 && i < s->servers_len; i++) {
        const struct hist *h = s->servers[i];
        fprintf(out, "Server %s = %ju requests, p50 %.1f us, p99 %.1f us\n",
                o->servers[i], (uintmax_t)hist_count(h), report_us_at(h, .50),
                report_us_at(h, .99));
    }
    if (s != NULL && s->conns_len > 1) {
        fprintf(out, "Connections = %u, min / median / max: ", s->conns_len);
        print_range(s, EVENNESS_REQUESTS, "requests ", ", ", out);
        print_range(s, EVENNESS_P50, "p50 ", " us, ", out);
        print_range(s, EVENNESS_P99, "p99 ", " us\n", out);
    }
}

static void
print_class(const struct result *r, const struct options *o, unsigned i, FILE *out)
{
    const struct result *c = &r->classes[i];
    const struct lclass *l = &o->classes[i];
    const struct report_form form = report_form_of(o);
    /* Scripts that look for mutilate's rows find those of the run, and none of a
     * class. */
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
    const struct result *shown = r->has_shown ? &r->classes[r->shown] : r;
    fputc('\n', out);
    report_mutilate(r, o, out);
    fputc('\n', out);
    print_ops(&r->total, out);
    print_misses(&r->total, out);
    print_pace(r, out);
    print_confidence(shown, out);
    print_without_answer(&r->total, out);
    print_outstanding(shown->total.outstanding, out);
    print_hits(r, out);
    print_connections(&r->total, out);
    print_evenness(r, o, out);
    print_classes(r, o, out);
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
