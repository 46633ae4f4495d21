/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Several runs in one: the search for the highest rate within a limit, scans, repeats.
 */
#include "loadgen/options/group.h"

#include "base/num.h"
#include "loadgen/work/form.h"

#define TOLERANCE_DEFAULT 0.01
#define TOLERANCE_MAX 0.5
#define REPEAT_MAX 1000
#define BUDGET_MAX_S 1e9

static const char *
parse_tolerance(void *field, const char *text)
{
    double *tolerance = field;
    if (!num_share(text, strlen(text), tolerance, NULL)) {
        return "the tolerance is a percentage, like 1%";
    }
    return *tolerance > 0 && *tolerance <= TOLERANCE_MAX
               ? NULL
               : "the tolerance is above 0% and at most 50%";
}

static const char *
parse_budget(void *field, const char *text)
{
    return duration_parse(text, strlen(text), field) && *(double *)field <= BUDGET_MAX_S
               ? NULL
               : "a budget is a time, 0 or more";
}

static const char *const orders[] = {
    [SCAN_UP] = "up",
    [SCAN_DOWN] = "down",
    [SCAN_SHUFFLED] = "shuffled",
};

/* clang-format off */
static const struct opt rows[] = {
    {.name = "search", SCOPE(LEADER), PARSE(goal_parse), OF_RUN(goal), .common = 13,
     .arg = "GOAL",
     .help = "find the highest rate that meets p99.9:500us[,class=NAME][,err<0.01%]"},
    {.name = "search-tolerance", SCOPE(LEADER), PARSE(parse_tolerance),
     OF_RUN(tolerance), .arg = "PERCENT", .help = "precision of the rate (1%)"},
    {.name = "search-budget", SCOPE(LEADER), PARSE(parse_budget), OF_RUN(budget_s),
     .arg = "SECONDS",
     .help = "time for all runs of the search (that of 40 runs)"},
    {.name = "scan", SCOPE(LEADER), PARSE(scan_parse), OF_RUN(scan), .common = 14,
     .arg = "FIRST:LAST:STEP",
     .help = "a run at each rate, or at each share of the peak: 10%:100%:10%"},
    {.name = "scan-order", SCOPE(LEADER), KIND(CHOICE), OF_RUN(scan_order),
     OPT_CHOICES(orders), .arg = "up|down|shuffled",
     .error = "the order of a scan is up, down or shuffled",
     .help = "order of the loads of a scan (up)"},
    {.name = "stop-latency", SCOPE(LEADER), PARSE(goal_parse), OF_RUN(stop_goal),
     .arg = "GOAL",
     .help = "stop a scan at the first load above this latency, e.g. 95:1000"},
    {.name = "repeat", SCOPE(LEADER), KIND(INT), OF_RUN(repeat), .min = 1,
     .max = REPEAT_MAX, .arg = "N",
     .help = "repeat each run N times, with fresh connections (1)"},
};
/* clang-format on */

static void
init(struct options *o)
{
    o->tolerance = TOLERANCE_DEFAULT;
    o->repeat = 1;
}

/* Part of the load: it neither measures nor, unless all do, stands beside it. */
static bool
is_load(const struct options *o, const struct lclass *c)
{
    bool has_others = false; /* than antagonists */
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *other = &o->classes[i];
        has_others = has_others || (!other->is_measuring && other->antagonist == NULL);
    }
    return !c->is_measuring && (c->antagonist == NULL || !has_others);
}

/* The class whose rate is varied: the only one, or the only one without a rate of its own,
 * or the one that the goal names. */
static const char *
find_varied(struct options *o, const struct goal *g)
{
    unsigned unrated = 0, loads = 0;
    int named = options_class_named(o, g->class_name);
    if (g->class_name[0] != '\0' && named < 0) {
        return "there is no class of the name that the goal has: class=NAME is one of "
               "--class=NAME:...";
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        loads += is_load(o, &o->classes[i]) ? 1 : 0;
    }
    for (unsigned i = 0; i < o->classes_len; i++) {
        const struct lclass *c = &o->classes[i];
        if (is_load(o, c) && ((c->qps == 0 && c->qps_share == 0) || loads == 1)) {
            unrated++;
            o->varied = i;
        }
    }
    if (unrated != 1 && named < 0) {
        return "which class's rate is to be varied? The one without --qps, or the goal's "
               "class=NAME";
    }
    o->varied = unrated == 1 ? o->varied : (unsigned)named;
    return NULL;
}

static const char *
settle(struct options *o)
{
    bool is_varied = o->goal.is_given || o->scan.is_given;
    if (o->goal.is_given && o->scan.is_given) {
        return "--search and --scan are mutually exclusive";
    }
    if (o->goal.is_given && o->repeat > 1) {
        return "--repeat is for runs and scans: a --search repeats the runs that confirm "
               "its answer";
    }
    if (o->stop_goal.is_given && !o->scan.is_given) {
        return "--stop-latency needs --scan";
    }
    if (o->stop_goal.is_given && o->stop_goal.limit_ns == 0) {
        return "--stop-latency takes a time";
    }
    if (o->stop_goal.errors_max > 0) {
        return "--stop-latency looks at latencies alone: err< is for --search";
    }
    if (!o->goal.is_given && (o->tolerance != TOLERANCE_DEFAULT || o->budget_s > 0)) {
        return "--search-tolerance and --search-budget need --search";
    }
    if (!o->scan.is_given && o->scan_order != SCAN_UP) {
        return "--scan-order needs --scan";
    }
    const char *wrong =
        is_varied ? find_varied(o, o->goal.is_given ? &o->goal : &o->stop_goal) : NULL;
    for (unsigned i = 0; i < o->classes_len && wrong == NULL; i++) {
        struct lclass *c = &o->classes[i];
        bool has_rate = c->qps > 0 || c->qps_share > 0 || is_varied || o->is_told ||
                        schedule_varies(&c->traffic.schedule);
        c->traffic.late = c->skips && has_rate ? LATE_DROP : c->traffic.late;
        wrong = traffic_check(c, is_varied, is_varied && i == o->varied, o->is_told);
    }
    return wrong;
}

const struct run_group group_search = {ROWS(rows), .init = init, .settle = settle};
