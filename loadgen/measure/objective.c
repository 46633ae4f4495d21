/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/objective.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define LIMIT_MAX_NS 1e12

/* The largest last, so that a time is told in the largest unit that it fills. */
static const struct {
    const char *name;
    double ns;
} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
#define UNITS (sizeof units / sizeof units[0])

/* 0 when it is no unit. */
static double
unit_of(const char *text)
{
    for (size_t i = 0; i < UNITS; i++) {
        if (strcmp(units[i].name, text) == 0) {
            return units[i].ns;
        }
    }
    return text[0] == '\0' ? 1e3 : 0;
}

const char *
objective_parse(struct objective *slo, const char *text)
{
    const char *from = text + (text[0] == 'p' ? 1 : 0);
    const char *colon = strchr(from, ':');
    if (colon == NULL) {
        return "an objective is pPERCENTILE:TIME, e.g. p99:500us";
    }
    double percent, limit;
    if (!num_double(from, (size_t)(colon - from), &percent) || percent <= 0 ||
        percent > 100) {
        return "the percentile of an objective is above 0 and at most 100";
    }
    size_t digits = strspn(colon + 1, "0123456789.");
    double unit = unit_of(colon + 1 + digits);
    if (unit == 0 || !num_double(colon + 1, digits, &limit) || limit * unit < 1 ||
        limit * unit > LIMIT_MAX_NS) {
        return "the time of an objective is a number with ns, us, ms or s";
    }
    *slo = (struct objective){percent, (nsec_t)(limit * unit + 0.5)};
    return NULL;
}

void
objective_describe(const struct objective *slo, char dst[OBJECTIVE_TEXT_MAX])
{
    size_t unit = UNITS - 1;
    while (unit > 0 && (double)slo->limit < units[unit].ns) {
        unit--;
    }
    snprintf(dst, OBJECTIVE_TEXT_MAX, "p%.10g:%.10g%s", slo->percent,
             (double)slo->limit / units[unit].ns, units[unit].name);
}
