/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/search/goal.h"

#include "base/num.h"
#include "base/part.h"

#define PERCENT 100.0
#define NS_PER_US 1e3
#define LIMIT_MAX_NS 1e12

static const char shape[] = "a goal is pPERCENTILE:LIMIT, like p99.9:500us or 99:1000";

static bool
parse_limit(struct goal *g, const char *text, size_t len)
{
    if (len > 0 && text[len - 1] == 'x') {
        g->limit_ns = 0;
        return num_double(text, len - 1, &g->times) && g->times > 1 &&
               g->times < LIMIT_MAX_NS;
    }
    return num_with_unit(text, len, num_times, NUM_TIMES, &g->limit_ns) &&
           g->limit_ns > 0 && g->limit_ns <= LIMIT_MAX_NS;
}

/* "p99.9", "p999" as the table's columns have it, "99" for gets only, "avg". */
static bool
parse_statistic(struct goal *g, const char *text, size_t len)
{
    if (len == 3 && memcmp(text, "avg", len) == 0) {
        g->is_mean = true;
        return true;
    }
    bool has_letter = len > 0 && text[0] == 'p';
    g->scope = has_letter ? GOAL_ALL : GOAL_READS;
    double percent;
    if (!num_double(text + has_letter, len - has_letter, &percent)) {
        return false;
    }
    if (has_letter && percent > PERCENT && memcmp(text, "p99", 3) != 0) {
        return false;
    }
    while (has_letter && percent > PERCENT) {
        percent /= 10;
    }
    g->q = percent / PERCENT;
    return percent > 0 && percent < PERCENT;
}

static const char *
parse_errors(struct goal *g, const char *text, size_t len)
{
    if (!num_share(text, len, &g->errors_max, NULL) || g->errors_max < 0) {
        return "the errors allowed are a share, like err<0.01%";
    }
    return g->errors_max <= 1 ? NULL : "not more than all requests can fail";
}

static const char *
parse_condition(void *goal, const char *text, size_t len)
{
    struct goal *g = goal;
    static const char class_key[] = "class=", errors_key[] = "err<";
    size_t n = sizeof class_key - 1, m = sizeof errors_key - 1;
    if (len > n && memcmp(text, class_key, n) == 0) {
        if (len - n >= sizeof g->class_name) {
            return "the name of a class is too long";
        }
        memcpy(g->class_name, text + n, len - n);
        g->class_name[len - n] = '\0';
        return NULL;
    }
    if (len > m && memcmp(text, errors_key, m) == 0) {
        return parse_errors(g, text + m, len - m);
    }
    return "a goal's conditions are class=NAME and err<SHARE";
}

const char *
goal_parse(void *goal, const char *text)
{
    struct goal *g = goal;
    *g = (struct goal){.is_given = true};
    const char *colon = strchr(text, ':');
    size_t len = colon != NULL ? strcspn(colon + 1, ",") : 0;
    if (colon == NULL || !parse_statistic(g, text, (size_t)(colon - text)) ||
        !parse_limit(g, colon + 1, len)) {
        return shape;
    }
    const char *more = colon + 1 + len;
    return *more == ',' ? part_each(more + 1, strlen(more + 1), ',', parse_condition, g)
                        : NULL;
}

void
goal_describe(const struct goal *g, char *dst, unsigned size)
{
    char limit[48];
    if (g->limit_ns > 0) {
        snprintf(limit, sizeof limit, "%g us", g->limit_ns / NS_PER_US);
    } else {
        snprintf(limit, sizeof limit, "%g times that of a low load", g->times);
    }
    char statistic[32] = "avg";
    if (!g->is_mean) {
        snprintf(statistic, sizeof statistic, "p%.8g", g->q * PERCENT);
    }
    snprintf(dst, size, "%s%s%s%s <= %s", g->class_name,
             g->class_name[0] != '\0' ? " " : "", statistic,
             g->scope == GOAL_READS ? " of gets" : "", limit);
}
