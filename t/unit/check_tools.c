/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether two results differ, and results as pictures.
 */
#include "loadgen/tools/compare.h"

#include <math.h>

#include "loadgen/measure/counters.h"
#include "loadgen/tools/plot.h"
#include "loadgen/tools/tool.h"
#include "check_main.h"

#define US 1000.0

static struct saved group;

/* A run whose every percentile is `value` us with an interval of half that to its half more;
 * wide: none above. */
static void
add(struct saved *g, double value, double half, bool is_open)
{
    g->runs = realloc(g->runs, (g->count + 1) * sizeof *g->runs);
    ck_assert_ptr_nonnull(g->runs);
    struct saved_run *r = &g->runs[g->count++];
    *r = (struct saved_run){
        .name = strdup("a<b>&\"c\""), .is_valid = true, .achieved_qps = 100 * g->count};
    r->latency = hist_create(COUNTERS_SUB_BITS, COUNTERS_MAX_NS);
    hist_record_n(r->latency, (uint64_t)(value * US), 1000);
    hist_record_n(r->latency, (uint64_t)(2 * value * US), 20);
    for (unsigned at = 0; at < SAVED_AT; at++) {
        r->at[at] = (struct saved_point){true, true, value * US, (value - half) * US,
                                         is_open ? INFINITY : (value + half) * US};
    }
}

static void
set_up(void)
{
    group = (struct saved){.runs = NULL};
}

static void
tear_down(void)
{
    saved_fini(&group);
}

FIXTURE(set_up, tear_down);

TEST(test_verdicts)
{
    struct estimate low = {true, 10, 9, 11}, high = {true, 20, 15, INFINITY};
    struct estimate wide = {true, 12, 5, 18}, none = {false, 10, 0, 0};
    ck_assert_int_eq(compare_two(low, high), COMPARE_HIGHER);
    ck_assert_int_eq(compare_two(high, low), COMPARE_LOWER);
    ck_assert_int_eq(compare_two(low, wide), COMPARE_SAME);
    ck_assert_int_eq(compare_two(wide, high), COMPARE_SAME);
    ck_assert_int_eq(compare_two(low, low), COMPARE_SAME);
    ck_assert_int_eq(compare_two(low, none), COMPARE_UNKNOWN);
    ck_assert_int_eq(compare_two(none, low), COMPARE_UNKNOWN);
}

TEST(test_one_run)
{
    add(&group, 100, 10, false);
    struct estimate e = compare_estimate(&group, SAVED_P99);
    ck_assert(e.is_known);
    ck_assert_double_eq(e.low, 90 * US);
    ck_assert_double_eq(e.high, 110 * US);
    group.runs[0].at[SAVED_P99].has_interval = false;
    e = compare_estimate(&group, SAVED_P99);
    ck_assert(!e.is_known);
    ck_assert_double_eq(e.value, 100 * US);
    group.runs[0].at[SAVED_P99].is_measured = false;
    ck_assert(!compare_estimate(&group, SAVED_P99).is_known);
}

/* Runs that differ by more than their own confidence: the spread between them counts. */
TEST(test_spread_between_runs)
{
    add(&group, 90, 1, false);
    add(&group, 100, 1, false);
    add(&group, 110, 1, false);
    struct estimate e = compare_estimate(&group, SAVED_P50);
    ck_assert(e.is_known);
    ck_assert_double_eq(e.value, 100 * US);
    ck_assert_double_eq_tol(e.high - e.value, 4.3027 * 10 / sqrt(3) * US, US / 100);
    /* Alike to the last digit: what is left is their own. */
    saved_fini(&group);
    add(&group, 100, 20, false);
    add(&group, 100, 20, true);
    e = compare_estimate(&group, SAVED_P50);
    ck_assert_double_eq_tol(e.value - e.low, 20 / sqrt(2) * US, 1);
    ck_assert(isinf(e.high));
}

static char *
print(void)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct saved other = {.runs = NULL};
    add(&other, 200, 10, true);
    compare_print(&group, &other, out);
    saved_fini(&other);
    fclose(out);
    return text;
}

TEST(test_table)
{
    add(&group, 100, 10, false);
    FREED char *text = print();
    expect_part(text, "100.0 (90.0 .. 110.0)");
    expect_part(text, "200.0 (190.0 ..)");
    expect_part(text, "  B is higher (+100.0%)\n");
    expect_part(text, "A side has one run");
    free(text);
    group.runs[0].is_valid = false;
    text = print();
    ck_assert_uint_eq(count_of(text, "  B is higher (+100.0%), but A is INVALID\n"),
                      SAVED_AT);
    free(text);
    group.runs[0].at[SAVED_P999] = (struct saved_point){.is_measured = false};
    group.runs[0].is_valid = false;
    text = print();
    expect_part(text, "not measured");
    expect_part(text, "cannot tell");
    expect_part(text, "(INVALID)");
    ck_assert_ptr_null(strstr(text, "nan"));
}

/* The picture, or why there is none. */
static bool
draw_or_not(const struct plot *plot, char **text, char *err)
{
    size_t len;
    FILE *out = open_memstream(text, &len);
    bool is_drawn = plot_draw(plot, out, err);
    fclose(out);
    ck_assert_uint_eq(strlen(*text), len);
    return is_drawn;
}

static char *
draw(const struct plot *plot)
{
    static char *text; /* the compiler believes that the stream keeps its address */
    char err[SAVED_ERR_MAX] = "";
    ck_assert_msg(draw_or_not(plot, &text, err), "%s", err);
    return text;
}

static char *
draw_group(enum plot_kind kind)
{
    return draw(&(struct plot){.kind = kind, .groups = &group, .groups_len = 1});
}

/* Each kind of plot of odd results is finite, and closed. */
TEST_LOOP(test_plots, PLOT_KINDS)
{
    struct saved_row row = {.start_s = 0, .length_s = 1, .rate = 10, .p50 = 0, .p99 = 5};
    add(&group, 100, 10, false);
    add(&group, 1e7, 10, true);
    for (unsigned i = 0; i < group.count; i++) {
        group.runs[i].rows = calloc(2, sizeof row);
        group.runs[i].rows[0] = group.runs[i].rows[1] = row;
        group.runs[i].rows_len = 2;
    }
    FREED char *text = draw_group((enum plot_kind)_i);
    ck_assert_ptr_null(strstr(text, "nan"));
    ck_assert_ptr_null(strstr(text, "inf"));
    ck_assert_ptr_null(strstr(text, "a<b"));
    ck_assert_ptr_nonnull(strstr(text, _i == PLOT_BARS ? "<rect" : "<polyline"));
    ck_assert_str_eq(text + strlen(text) - strlen("</svg>\n"), "</svg>\n");
}

/* A run that says nothing of the server is no point of a curve, and is marked everywhere. */
TEST(test_plots_of_invalid)
{
    add(&group, 100, 10, false);
    add(&group, 5000, 10, false);
    add(&group, 200, 10, false);
    group.runs[1].is_valid = false;
    FREED char *text = draw_group(PLOT_LOAD);
    const char *curve = strstr(text, "<polyline points=\"");
    ck_assert_ptr_nonnull(curve);
    unsigned points = 0;
    for (const char *p = strchr(curve, '"') + 1; *p != '"'; p++) {
        points += *p == ',' ? 1 : 0;
    }
    ck_assert_uint_eq(points, 2);
    ck_assert_uint_eq(count_of(text, "fill=\"white\" stroke"), SAVED_AT);
    ck_assert_uint_eq(count_of(text, "hollow: INVALID"), 1);
    free(text);
    text = draw_group(PLOT_CDF);
    ck_assert_uint_eq(count_of(text, " (INVALID)"), 1);
}

/* A row for the n-th run of each group, a bar for each of them, a colour for each group. */
TEST(test_bars)
{
    struct saved groups[2] = {{.name = NULL}, {.name = NULL}};
    for (unsigned g = 0; g < 2; g++) {
        groups[g].name = strdup(g == 0 ? "ours" : "others'");
        add(&groups[g], 78 * (g + 1), 10, false);
        add(&groups[g], 593, 10, false);
    }
    groups[1].runs[1].is_valid = false;
    groups[1].runs[0].at[SAVED_P99].is_measured = false;
    char *text = draw(&(struct plot){
        .kind = PLOT_BARS, .at = SAVED_P99, .groups = groups, .groups_len = 2});
    ck_assert_uint_eq(count_of(text, "<rect"), 2 + 4); /* picture, frame, bars */
    ck_assert_uint_eq(count_of(text, ">78</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">593</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">593 (INVALID)</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">not measured</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">ours</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">others&#39;</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">p99 from intended start, us</text>"), 1);
    ck_assert_uint_eq(count_of(text, ">0</text>"), 1);
    free(text);
    groups[1].runs[1].at[SAVED_P99].value = 900e3 * US; /* too far away to begin at 0 */
    text = draw(&(struct plot){
        .kind = PLOT_BARS, .at = SAVED_P99, .groups = groups, .groups_len = 2});
    ck_assert_uint_eq(count_of(text, ">0</text>"), 0);
    free(text);
    saved_fini(&groups[0]);
    saved_fini(&groups[1]);
}

static const char *const nothing[PLOT_KINDS] = {
    [PLOT_CDF] = "a run has no latencies: empty",
    [PLOT_LOAD] = "no run has latencies",
    [PLOT_TIME] = "a run has no intervals (--interval): empty",
    [PLOT_BARS] = "no run has latencies",
};

/* What cannot be drawn is said, and of which run where others have it, without a picture. */
TEST_LOOP(test_nothing_to_plot, PLOT_KINDS)
{
    FREED char *text = NULL;
    char err[SAVED_ERR_MAX] = "";
    add(&group, 100, 10, false);
    free(group.runs[0].name);
    group.runs[0].name = strdup("empty");
    hist_reset(group.runs[0].latency);
    for (unsigned at = 0; at < SAVED_AT; at++) {
        group.runs[0].at[at].is_measured = false;
    }
    struct plot plot = {.kind = (enum plot_kind)_i, .groups = &group, .groups_len = 1};
    ck_assert(!draw_or_not(&plot, &text, err));
    ck_assert_str_eq(err, nothing[_i]);
    ck_assert_str_eq(text, "");
}

TEST(test_names)
{
    ck_assert(tool_is("plot") && tool_is("compare") && tool_is("merge"));
    ck_assert(!tool_is("-s") && !tool_is("") && !tool_is("plots"));
    for (unsigned at = 0; at < SAVED_AT; at++) {
        ck_assert_double_eq_tol(strtod(saved_names[at] + 1, NULL) / 100, saved_shares[at],
                                1e-9);
    }
}
