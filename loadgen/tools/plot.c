/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/tools/plot.h"

#include <math.h>

#include "base/alloc.h"
#include "loadgen/tools/svg.h"

#define NS_PER_US 1e3
#define LEFT 78.0
#define TOP 44.0
#define WIDTH 500.0
#define HEIGHT 330.0
#define PANEL 190.0
#define BELOW 60.0
#define BAR 16.0
#define BAR_GAP 14.0
#define BAR_LEFT 210.0
#define BAR_WIDTH 330.0
#define BAR_ROOM 1.3       /* for the text behind the longest */
#define BAR_LINEAR_MAX 100 /* times the shortest; then the axis is logarithmic */
#define LABEL_MAX 120
#define BEYOND_MIN 10 /* a percentile with fewer requests beyond it is noise */

#define LATENCY_AXIS                                                                     \
    ((struct svg_axis){SVG_LOG, INFINITY, 0, "latency from intended start, us"})

const char *const plot_kinds[PLOT_KINDS] = {
    [PLOT_CDF] = "cdf",
    [PLOT_LOAD] = "load",
    [PLOT_TIME] = "time",
    [PLOT_BARS] = "bars",
};

static const char *const titles[PLOT_KINDS] = {
    [PLOT_CDF] = "Latency by percentile",
    [PLOT_LOAD] = "Latency by load",
    [PLOT_TIME] = "Rate and latency over time",
    [PLOT_BARS] = "Latency side by side",
};

static const char *
title_of(const struct plot *p)
{
    return p->title != NULL ? p->title : titles[p->kind];
}

static struct svg_frame
frame_of(FILE *out, double height, struct svg_axis x, struct svg_axis y)
{
    return (struct svg_frame){out, LEFT, TOP, WIDTH, height, x, y};
}

/* The run number n of all groups; NULL beyond the last. */
static const struct saved_run *
run_at(const struct plot *p, unsigned n)
{
    for (unsigned g = 0; g < p->groups_len; g++) {
        if (n < p->groups[g].count) {
            return &p->groups[g].runs[n];
        }
        n -= p->groups[g].count;
    }
    return NULL;
}

/* What is drawn though it says nothing of the server is marked. */
static const char *
label_of(const char *what, const struct saved_run *run, char label[LABEL_MAX])
{
    snprintf(label, LABEL_MAX, "%s%s%s", what, run->name,
             run->is_valid ? "" : " (INVALID)");
    return label;
}

static bool
refuse(char *err, const char *what, const char *run)
{
    snprintf(err, SAVED_ERR_MAX, "%s%s", what, run);
    return false;
}

static void
include(struct svg_axis *a, double value)
{
    if (isfinite(value) && (a->scale != SVG_LOG || value > 0)) {
        a->min = fmin(a->min, value);
        a->max = fmax(a->max, value);
    }
}

/* ---- latency by percentile ------------------------------------------------------------ */

static double
total_of(const struct saved_run *run)
{
    return (double)(hist_count(run->latency) + run->censored);
}

static void
draw_cdf(const struct svg_frame *f, const struct saved_run *run, unsigned colour)
{
    struct svg_curve curve;
    uint32_t at = 0;
    uint64_t low, high, count;
    double below = 0, all = total_of(run);
    svg_curve_open(&curve, f, colour, false);
    while (hist_next(run->latency, &at, &low, &high, &count)) {
        double share = (below + (double)count) / all;
        if (all * (1 - share) < BEYOND_MIN - 0.5) {
            break;
        }
        if (below == 0) {
            svg_curve_point(&curve, 0, (double)low / NS_PER_US);
        }
        svg_curve_point(&curve, share, (double)high / NS_PER_US);
        below += (double)count;
    }
    svg_curve_close(&curve);
    for (unsigned i = 0; i < SAVED_AT; i++) {
        const struct saved_point *point = &run->at[i];
        if (point->is_measured && point->has_interval) {
            svg_whisker(f, colour, saved_shares[i], point->low / NS_PER_US,
                        point->high / NS_PER_US);
        }
    }
}

static bool
plot_cdf(const struct plot *p, FILE *out, char *err)
{
    const struct saved_run *run;
    struct svg_axis shares = {SVG_PERCENTILE, 0, .9, "percentile (with 95% intervals)"};
    struct svg_frame f = frame_of(out, HEIGHT, shares, LATENCY_AXIS);
    for (unsigned n = 0; (run = run_at(p, n)) != NULL; n++) {
        if (hist_count(run->latency) == 0) {
            return refuse(err, "a run has no latencies: ", run->name);
        }
        double last = 1 - BEYOND_MIN / total_of(run);
        f.x.max = fmax(f.x.max, last);
        include(&f.y, fmax(1, (double)hist_min(run->latency)) / NS_PER_US);
        include(&f.y, (double)hist_quantile(run->latency, fmax(last, .5)) / NS_PER_US);
    }
    svg_open(out, TOP + HEIGHT + BELOW, title_of(p));
    svg_draw_frame(&f);
    for (unsigned n = 0; (run = run_at(p, n)) != NULL; n++) {
        char label[LABEL_MAX];
        draw_cdf(&f, run, n);
        svg_legend(&f, n, n, false, label_of("", run, label));
    }
    svg_close(out);
    return true;
}

/* ---- latency by load ------------------------------------------------------------------ */

static int
by_rate(const void *a, const void *b)
{
    double x = ((const struct saved_run *)a)->achieved_qps;
    double y = ((const struct saved_run *)b)->achieved_qps;
    return (x > y) - (x < y);
}

/* All runs in the order of their rates. The caller frees. */
static struct saved_run *
sorted_runs(const struct plot *p, unsigned *count)
{
    for (*count = 0; run_at(p, *count) != NULL; ++*count) {
    }
    struct saved_run *runs = alloc_zeroed(*count, sizeof *runs);
    for (unsigned i = 0; i < *count; i++) {
        runs[i] = *run_at(p, i);
    }
    qsort(runs, *count, sizeof *runs, by_rate);
    return runs;
}

/* The curve leads through valid runs only; points of others are hollow. */
static void
draw_by_load(const struct svg_frame *f, const struct plot *p, unsigned colour)
{
    enum saved_at at = p->at;
    struct svg_curve curve;
    unsigned count;
    struct saved_run *runs = sorted_runs(p, &count);
    svg_curve_open(&curve, f, colour, false);
    for (unsigned i = 0; i < count; i++) {
        if (runs[i].at[at].is_measured && runs[i].is_valid) {
            svg_curve_point(&curve, runs[i].achieved_qps,
                            runs[i].at[at].value / NS_PER_US);
        }
    }
    svg_curve_close(&curve);
    for (unsigned i = 0; i < count; i++) {
        const struct saved_point *point = &runs[i].at[at];
        double rate = runs[i].achieved_qps;
        if (point->is_measured) {
            svg_dot(f, colour, !runs[i].is_valid, rate, point->value / NS_PER_US);
        }
        if (point->is_measured && point->has_interval && runs[i].is_valid) {
            svg_whisker(f, colour, rate, point->low / NS_PER_US, point->high / NS_PER_US);
        }
    }
    free(runs);
}

static const char *
group_name(const struct plot *p, unsigned g)
{
    const struct saved *group = &p->groups[g];
    return group->name != NULL ? group->name
           : group->count > 0  ? group->runs[0].name
                               : "nothing";
}

/* Several files of one run each are one curve; else each word of the command line is. */
static bool
is_one_curve(const struct plot *p)
{
    for (unsigned g = 0; g < p->groups_len; g++) {
        if (p->groups[g].count != 1) {
            return p->groups_len == 1;
        }
    }
    return true;
}

static bool
plot_load(const struct plot *p, FILE *out, char *err)
{
    struct svg_axis rates = {SVG_LINEAR, 0, 0, "requests a second"};
    struct svg_frame f = frame_of(out, HEIGHT, rates, LATENCY_AXIS);
    bool is_one = is_one_curve(p), is_valid = true;
    const struct saved_run *run;
    for (unsigned n = 0; (run = run_at(p, n)) != NULL; n++) {
        include(&f.x, run->achieved_qps);
        is_valid = is_valid && run->is_valid;
        for (unsigned at = 0; at < SAVED_AT; at++) {
            if (run->at[at].is_measured && (is_one || at == (unsigned)p->at)) {
                include(&f.y, run->at[at].value / NS_PER_US);
            }
        }
    }
    if (!(f.y.min <= f.y.max)) {
        return refuse(err, "no run has latencies", "");
    }
    svg_open(out, TOP + HEIGHT + BELOW, title_of(p));
    svg_draw_frame(&f);
    unsigned curves = is_one ? (unsigned)SAVED_AT : p->groups_len;
    for (unsigned n = 0; n < curves; n++) {
        struct plot part = *p;
        char label[LABEL_MAX];
        if (is_one) {
            part.at = (enum saved_at)n;
            snprintf(label, sizeof label, "%s", saved_names[n]);
        } else {
            part.groups = &p->groups[n];
            part.groups_len = 1;
            snprintf(label, sizeof label, "%s of %s", saved_names[p->at],
                     group_name(p, n));
        }
        draw_by_load(&f, &part, n);
        svg_legend(&f, n, n, false, label);
    }
    if (!is_valid) {
        svg_note(&f, curves, "hollow: INVALID");
    }
    svg_close(out);
    return true;
}

/* ---- over time ------------------------------------------------------------------------ */

static void
draw_over_time(const struct svg_frame *f, const struct saved_run *run, size_t offset,
               double unit, unsigned colour, bool is_dashed)
{
    struct svg_curve curve;
    svg_curve_open(&curve, f, colour, is_dashed);
    for (unsigned i = 0; i < run->rows_len; i++) {
        const struct saved_row *row = &run->rows[i];
        double value;
        memcpy(&value, (const char *)row + offset, sizeof value);
        svg_curve_point(&curve, row->start_s + row->length_s / 2, value / unit);
    }
    svg_curve_close(&curve);
}

static bool
plot_time(const struct plot *p, FILE *out, char *err)
{
    const struct saved_run *run;
    struct svg_axis seconds = {SVG_LINEAR, 0, 0, "seconds"};
    struct svg_axis rates = {SVG_LINEAR, 0, 0, "requests a second"};
    struct svg_frame rate = frame_of(out, PANEL, seconds, rates);
    struct svg_frame latency = rate;
    latency.top = TOP + PANEL + BELOW;
    latency.y = (struct svg_axis){SVG_LOG, INFINITY, 0, "latency, us"};
    for (unsigned n = 0; (run = run_at(p, n)) != NULL; n++) {
        if (run->rows_len == 0) {
            return refuse(err, "a run has no intervals (--interval): ", run->name);
        }
        for (unsigned i = 0; i < run->rows_len; i++) {
            const struct saved_row *row = &run->rows[i];
            include(&rate.x, row->start_s + row->length_s);
            include(&rate.y, row->rate);
            include(&latency.y, row->p50 / NS_PER_US);
            include(&latency.y, row->p99 / NS_PER_US);
        }
    }
    latency.x = rate.x;
    svg_open(out, latency.top + PANEL + BELOW, title_of(p));
    svg_draw_frame(&rate);
    svg_draw_frame(&latency);
    for (unsigned n = 0; (run = run_at(p, n)) != NULL; n++) {
        char label[LABEL_MAX];
        draw_over_time(&rate, run, offsetof(struct saved_row, rate), 1, n, false);
        draw_over_time(&latency, run, offsetof(struct saved_row, p99), NS_PER_US, n,
                       false);
        draw_over_time(&latency, run, offsetof(struct saved_row, p50), NS_PER_US, n,
                       true);
        svg_legend(&rate, n, n, false, label_of("", run, label));
        svg_legend(&latency, 2 * n, n, false, label_of("p99 of ", run, label));
        svg_legend(&latency, 2 * n + 1, n, true, label_of("p50 of ", run, label));
    }
    svg_close(out);
    return true;
}

/* ---- side by side --------------------------------------------------------------------- */

static void
draw_bar(const struct svg_frame *f, const struct saved_run *run, enum saved_at at,
         unsigned colour, double top)
{
    char text[LABEL_MAX];
    double us = run->at[at].value / NS_PER_US;
    if (run->at[at].is_measured) {
        snprintf(text, sizeof text, "%.*f%s", us < 10 ? 1 : 0, us,
                 run->is_valid ? "" : " (INVALID)");
    } else {
        snprintf(text, sizeof text, "not measured");
    }
    svg_bar(f, colour, !run->is_valid, top, BAR - 2, us, text);
}

/* A row for the n-th run of each group, with a bar for each group in it. */
static bool
plot_bars(const struct plot *p, FILE *out, char *err)
{
    char x_title[LABEL_MAX];
    const struct saved_run *run;
    unsigned rows = 0;
    struct svg_axis x = {SVG_LINEAR, 0, 0, x_title}, y = {SVG_LINEAR, 0, 1, NULL};
    struct svg_frame f = {out, BAR_LEFT, TOP, BAR_WIDTH, 0, x, y};
    snprintf(x_title, sizeof x_title, "%s from intended start, us", saved_names[p->at]);
    struct svg_axis values = {SVG_LOG, INFINITY, 0, NULL};
    for (unsigned n = 0; (run = run_at(p, n)) != NULL; n++) {
        include(&values,
                run->at[p->at].is_measured ? run->at[p->at].value / NS_PER_US : 0);
    }
    if (!(values.max > 0)) {
        return refuse(err, "no run has latencies", "");
    }
    if (values.max > BAR_LINEAR_MAX * values.min) {
        f.x.scale = SVG_LOG;
        f.x.min = values.min / BAR_ROOM;
    }
    f.x.max = values.max * BAR_ROOM;
    for (unsigned g = 0; g < p->groups_len; g++) {
        rows = p->groups[g].count > rows ? p->groups[g].count : rows;
    }
    double row_height = p->groups_len * BAR + BAR_GAP;
    f.height = rows * row_height + BAR_GAP;
    svg_open(out, TOP + f.height + BELOW, title_of(p));
    svg_draw_frame(&f);
    for (unsigned g = 0; g < p->groups_len; g++) {
        const struct saved *group = &p->groups[g];
        for (unsigned i = 0; i < group->count; i++) {
            double top = f.top + BAR_GAP + i * row_height;
            draw_bar(&f, &group->runs[i], p->at, g, top + g * BAR);
            if (g == 0) {
                svg_label(&f, top + p->groups_len * BAR / 2, group->runs[i].name);
            }
        }
        svg_legend(&f, g, g, false, group_name(p, g));
    }
    svg_close(out);
    return true;
}

static bool (*const draws[PLOT_KINDS])(const struct plot *p, FILE *out, char *err) = {
    [PLOT_CDF] = plot_cdf,
    [PLOT_LOAD] = plot_load,
    [PLOT_TIME] = plot_time,
    [PLOT_BARS] = plot_bars,
};

bool
plot_draw(const struct plot *p, FILE *out, char *err)
{
    return draws[p->kind](p, out, err);
}
