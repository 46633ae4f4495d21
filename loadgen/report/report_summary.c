/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * report_summary: the five lines that a report begins with; of several classes the verdict,
 * and a row each.
 */
#include <assert.h>
#include <limits.h>

#include "loadgen/report/report.h"
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
    double offered = report_count(&t->offered), achieved = (double)result_achieved(r);
    double s = r->elapsed_s;
    if (!r->is_open) {
        return (struct rates){.achieved = result_ratio(report_totals(r).done, s)};
    }
    return (struct rates){
        .has_asked = true,
        .asked = r->qps > 0 ? r->qps : result_ratio(offered, s),
        .achieved = result_ratio(achieved, s),
        .share = result_ratio(achieved, offered),
    };
}

/* Requests that were never answered count as slower than all: ">T" is above T. */
static void
put_point(const struct result *r, double q, char text[NUMBER_MAX])
{
    struct quantile at = result_at(r, r->from, q);
    at.ns = q >= 1 && !at.is_bound ? hist_max(r->all[r->from]) : at.ns;
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
        fputs("\nHits = no get was answered\n", out);
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

/* ---- verdict ----------------------------------------------------------------------- */

/* As they explain each other: the first one is told first. */
static const enum result_check order[] = {
    CHECK_COMPLETE, CHECK_AGENTS, CHECK_START,      CHECK_VALUES,   CHECK_ERRORS,
    CHECK_ANSWERS,  CHECK_SERVED, CHECK_UNANSWERED, CHECK_SEARCH,   CHECK_STEAL,
    CHECK_CPU_WAIT, CHECK_CPU,    CHECK_READER,     CHECK_LATENESS, CHECK_ADHERENCE,
    CHECK_ARRIVALS, CHECK_RATE,   CHECK_STEADY,     CHECK_LITTLE,
};
static_assert(sizeof order / sizeof order[0] == CHECKS, "each once");

static void
print_reason(enum result_check check, const char *class, const struct check *c, FILE *out)
{
    const struct check_kind *k = &check_kinds[check];
    const char *sign = check_is_least(check) ? "<" : ">";
    fprintf(out, "INVALID: %s%s", class, class[0] != '\0' ? ": " : "");
    if (check == CHECK_SEARCH && c->value > 0) {
        fputs("the client was the limit: raise -T, or add machines (--agent)", out);
        return;
    }
    fputs(k->before, out);
    if (k->form == CHECK_COUNTS) {
        fprintf(out, "%.0f", c->value);
    } else if (k->form == CHECK_SHARES) {
        fprintf(out, "%.2f%% %s %g%%", 100 * c->value, sign, 100 * c->limit);
    } else if (k->form == CHECK_TIMES) {
        fprintf(out, "%.2f %s %g", c->value, sign, c->limit);
    }
    fprintf(out, "%s: %s", k->after, k->advice);
}

/* Class number `c`, or all of the run behind the last: that answers for what no class does,
 * and for everything when there is one class. */
static const struct check *
find_check(const struct result *r, enum result_check check, unsigned c)
{
    bool is_whole =
        check == CHECK_SEARCH || check == CHECK_AGENTS || check == CHECK_START;
    unsigned classes = r->classes_len > 1 ? r->classes_len : 0;
    if (c < classes) {
        return is_whole ? NULL : &r->classes[c].checks[check];
    }
    return is_whole || classes == 0 ? &r->checks[check] : NULL;
}

/* The first `most` of them, a line each but for the end of the last. Returns how many there
 * are. */
static unsigned
print_failed(const struct result *r, unsigned most, FILE *out)
{
    unsigned n = 0, classes = r->classes_len > 1 ? r->classes_len : 0;
    for (size_t i = 0; i < CHECKS; i++) {
        for (unsigned c = 0; c <= classes; c++) {
            const struct check *check = find_check(r, order[i], c);
            if (check == NULL || !check->applies || check->is_good) {
                continue;
            }
            if (n < most) {
                fputs(n > 0 ? "\n" : "", out);
                print_reason(order[i], c < classes ? r->classes[c].name : "", check, out);
            }
            n++;
        }
    }
    return n;
}

void
report_verdict(const struct result *r, bool all, FILE *out)
{
    if (r->is_valid) {
        fputs("VALID\n", out);
        return;
    }
    unsigned n = print_failed(r, all ? UINT_MAX : 1, out);
    if (!all && n > 1) {
        fprintf(out, " (and %u more: -v)", n - 1);
    }
    fputc('\n', out);
}
