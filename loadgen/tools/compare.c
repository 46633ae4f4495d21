/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/compare.h"

#include <math.h>

#include "loadgen/measure/ci.h"

#define NS_PER_US 1e3
/* Rates have no interval of their own: less than this is no difference. */
#define RATE_TOLERANCE 0.01

struct estimate
compare_estimate(const struct saved *group, enum saved_at at)
{
    struct estimate e = {.is_known = group->count > 0};
    double sum = 0, squares = 0, below = 0, above = 0;
    double n = group->count;
    for (unsigned i = 0; i < group->count; i++) {
        const struct saved_point *p = &group->runs[i].at[at];
        if (!p->is_measured) {
            return (struct estimate){.is_known = false};
        }
        e.is_known = e.is_known && (p->has_interval || n > 1);
        sum += p->value;
        if (p->has_interval) {
            below = fmax(below, p->value - p->low);
            above = fmax(above, p->high - p->value);
        }
    }
    if (group->count == 0) {
        return e;
    }
    e.value = sum / n;
    e.low = group->runs[0].at[at].low;
    e.high = group->runs[0].at[at].high;
    if (group->count > 1) {
        for (unsigned i = 0; i < group->count; i++) {
            squares += pow(group->runs[i].at[at].value - e.value, 2);
        }
        double between = ci_student(group->count - 1) * sqrt(squares / (n - 1) / n);
        /* Each run's own uncertainty shrinks with their number, too. */
        e.low = fmax(0, e.value - fmax(between, below / sqrt(n)));
        e.high = e.value + fmax(between, above / sqrt(n));
    }
    return e;
}

enum compare_verdict
compare_two(struct estimate a, struct estimate b)
{
    if (!a.is_known || !b.is_known) {
        return COMPARE_UNKNOWN;
    }
    return b.high < a.low   ? COMPARE_LOWER
           : b.low > a.high ? COMPARE_HIGHER
                            : COMPARE_SAME;
}

static void
print_estimate(struct estimate e, FILE *out)
{
    char text[80];
    if (!e.is_known && e.value == 0) {
        snprintf(text, sizeof text, "not measured");
    } else if (!e.is_known) {
        snprintf(text, sizeof text, "%.1f (n/a)", e.value / NS_PER_US);
    } else if (isinf(e.high)) {
        snprintf(text, sizeof text, "%.1f (%.1f ..)", e.value / NS_PER_US,
                 e.low / NS_PER_US);
    } else {
        snprintf(text, sizeof text, "%.1f (%.1f .. %.1f)", e.value / NS_PER_US,
                 e.low / NS_PER_US, e.high / NS_PER_US);
    }
    fprintf(out, " %30s", text);
}

static bool
is_valid(const struct saved *group)
{
    bool is_valid = true;
    for (unsigned i = 0; i < group->count; i++) {
        is_valid = is_valid && group->runs[i].is_valid;
    }
    return is_valid;
}

/* Of a side with a run that says nothing of the server a difference says nothing of it, either. */
static const char *
doubt_of(const struct saved *a, const struct saved *b)
{
    static const char *const doubts[2][2] = {
        {"", ", but B is INVALID"}, {", but A is INVALID", ", but both are INVALID"}};
    return doubts[!is_valid(a)][!is_valid(b)];
}

static void
print_change(enum compare_verdict verdict, double from, double to, const char *doubt,
             FILE *out)
{
    double change = from > 0 ? 100 * (to - from) / from : 0;
    if (verdict == COMPARE_UNKNOWN) {
        fputs("  cannot tell: no confidence interval\n", out);
    } else if (verdict == COMPARE_SAME) {
        fputs("  no difference shown\n", out);
    } else {
        fprintf(out, "  B is %s (%+.1f%%)%s\n",
                verdict == COMPARE_LOWER ? "lower" : "higher", change, doubt);
    }
}

static double
mean_rate(const struct saved *group)
{
    double sum = 0;
    for (unsigned i = 0; i < group->count; i++) {
        sum += group->runs[i].achieved_qps;
    }
    return group->count > 0 ? sum / group->count : 0;
}

static void
print_rates(const struct saved *a, const struct saved *b, FILE *out)
{
    double x = mean_rate(a), y = mean_rate(b);
    double change = x > 0 ? (y - x) / x : 0;
    fprintf(out, "%-8s %30.1f %30.1f", "QPS", x, y);
    print_change(fabs(change) <= RATE_TOLERANCE ? COMPARE_SAME
                 : change < 0                   ? COMPARE_LOWER
                                                : COMPARE_HIGHER,
                 x, y, doubt_of(a, b), out);
}

static void
print_group(const char *name, const struct saved *group, FILE *out)
{
    fprintf(out, "%s =", name);
    for (unsigned i = 0; i < group->count; i++) {
        fprintf(out, "%s %s%s", i > 0 ? "," : "", group->runs[i].name,
                group->runs[i].is_valid ? "" : " (INVALID)");
    }
    fputc('\n', out);
}

/* Held against the first of all: what differs, of the first run that does. */
static void
print_workloads(const struct saved *a, const struct saved *b, FILE *out)
{
    const char *before = "Warning: different workloads: ";
    const struct saved_run *first = &a->runs[0];
    for (unsigned n = 1; n < a->count + b->count && before[0] == 'W'; n++) {
        const struct saved_run *run = n < a->count ? &a->runs[n] : &b->runs[n - a->count];
        unsigned i = 0;
        while ((i = saved_differs(&first->load, &run->load, i)) < SAVED_LOADS) {
            fprintf(out, "%s%s is %s in %s, %s in %s", before, saved_loads[i],
                    first->load.text[i], first->name, run->load.text[i], run->name);
            before = "; ";
            i++;
        }
    }
    fputs(before[0] == 'W' ? "" : "\n", out);
}

/* Latencies at different rates are not those of one thing. */
static void
print_loads(const struct saved *a, const struct saved *b, FILE *out)
{
    const struct saved_run *first = &a->runs[0];
    for (unsigned n = 1; n < a->count + b->count; n++) {
        const struct saved_run *run = n < a->count ? &a->runs[n] : &b->runs[n - a->count];
        if (fabs(run->asked_qps - first->asked_qps) >= 1) {
            fprintf(out, "Warning: different rates: %.0f/s in %s, %.0f/s in %s\n",
                    first->asked_qps, first->name, run->asked_qps, run->name);
            return;
        }
    }
}

void
compare_print(const struct saved *a, const struct saved *b, FILE *out)
{
    print_group("A", a, out);
    print_group("B", b, out);
    print_workloads(a, b, out);
    print_loads(a, b, out);
    fprintf(out, "\n%-8s %30s %30s\n", "us", "A (95% interval)", "B (95% interval)");
    for (unsigned at = 0; at < SAVED_AT; at++) {
        struct estimate x = compare_estimate(a, at), y = compare_estimate(b, at);
        fprintf(out, "%-8s", saved_names[at]);
        print_estimate(x, out);
        print_estimate(y, out);
        print_change(compare_two(x, y), x.value, y.value, doubt_of(a, b), out);
    }
    print_rates(a, b, out);
    if (a->count == 1 || b->count == 1) {
        fputs("\nA side has one run: how much runs differ from each other is not known; "
              "compare several (A1,A2,A3 B1,B2,B3)\n",
              out);
    }
}
