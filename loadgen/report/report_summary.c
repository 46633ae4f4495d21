/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * report_summary: the five lines that a report begins with; of several classes the verdict,
 * and a row each.
 */
#include "loadgen/report/report.h"

#include <math.h>

#include "loadgen/report/report_parts.h"

#define NUMBER_MAX 32

static const struct {
    const char *name, *head;
    double q;
} points[] = {
    {"p50", "p50 us", .5},
    {"p99", "p99 us", .99},
    {"p99.9", "p99.9 us", .999},
    {"max", "max us", 1},
};
#define POINTS (sizeof points / sizeof points[0])

struct rates {
    bool has_asked;
    double asked, achieved, share; /* share: of what was offered */
};

static struct rates
rates_of(const struct result *r)
{
    const struct counters *t = &r->total;
    double offered = report_count(&t->offered), good = report_count(&t->good);
    double s = r->elapsed_s;
    if (!r->is_open) {
        return (struct rates){.achieved = result_ratio(report_totals(r).done, s)};
    }
    return (struct rates){
        .has_asked = true,
        .asked = r->qps > 0 ? r->qps : result_ratio(offered, s),
        .achieved = result_ratio(good, s),
        .share = result_ratio(good, offered),
    };
}

/* Requests that were never answered count as slower than all: ">T" is above T. */
static void
put_point(const struct result *r, double q, char text[NUMBER_MAX])
{
    const struct hist *h = r->all[r->from];
    uint64_t censored = result_censored(&r->total);
    struct quantile at = result_quantile(h, r->total.waits, censored, q);
    at.ns = q >= 1 && !at.is_bound ? hist_max(h) : at.ns;
    snprintf(text, NUMBER_MAX, "%s%.1f", at.is_bound ? ">" : "", report_us(at.ns));
}

static void
print_lines(const struct result *r, FILE *out)
{
    struct rates rates = rates_of(r);
    struct report_totals t = report_totals(r);
    if (rates.has_asked) {
        fprintf(out, "Rate = %.1f/s asked for, %.1f/s achieved (%.2f%%)\n", rates.asked,
                rates.achieved, 100 * rates.share);
    } else {
        fprintf(out, "Rate = %.1f/s achieved (closed loop: none asked for)\n",
                rates.achieved);
    }
    bool is_known = hist_count(r->all[r->from]) + result_censored(&r->total) > 0;
    fputs(is_known ? "Latency =" : "Latency = not known", out);
    for (size_t i = 0; i < POINTS && is_known; i++) {
        char text[NUMBER_MAX];
        put_point(r, points[i].q, text);
        fprintf(out, "%s %s %s us", i > 0 ? "," : "", points[i].name, text);
    }
    if (t.keys > 0) {
        fprintf(out, "\nHits = %.2f%% (%.0f of %.0f keys)\n",
                100 * (1 - t.misses / t.keys), t.keys - t.misses, t.keys);
    } else {
        fputs("\nHits = no key was asked for\n", out);
    }
    report_errors(&r->total, out);
}

static void
print_row(const char *name, const struct result *r, FILE *out)
{
    struct rates rates = rates_of(r);
    struct report_totals t = report_totals(r);
    char asked[NUMBER_MAX] = "-", hits[NUMBER_MAX] = "-";
    if (rates.has_asked) {
        snprintf(asked, sizeof asked, "%.1f", rates.asked);
    }
    if (t.keys > 0) {
        snprintf(hits, sizeof hits, "%.2f%%", 100 * (1 - t.misses / t.keys));
    }
    fprintf(out, "%-12s %11s %11.1f", name, asked, rates.achieved);
    for (size_t i = 0; i < POINTS; i++) {
        char text[NUMBER_MAX];
        put_point(r, points[i].q, text);
        fprintf(out, " %10s", text);
    }
    fprintf(out, " %8s %7ju\n", hits, (uintmax_t)counters_error_sum(&r->total));
}

void
report_summary(const struct result *r, bool all, FILE *out)
{
    report_verdict(r, all, out);
    if (r->classes_len <= 1) {
        print_lines(r, out);
        return;
    }
    fprintf(out, "%-12s %11s %11s", "class", "asked/s", "achieved/s");
    for (size_t i = 0; i < POINTS; i++) {
        fprintf(out, " %10s", points[i].head);
    }
    fprintf(out, " %8s %7s\n", "hits", "errors");
    for (unsigned i = 0; i < r->classes_len; i++) {
        print_row(r->classes[i].name, &r->classes[i], out);
    }
}
