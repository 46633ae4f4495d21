/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/until.h"

#include <math.h>

#include "base/num.h"
#include "base/part.h"

#define AUTO_WIDTH 0.05
#define WIDTH_MAX 100

static const char *
parse_one(void *until, const char *text, size_t len)
{
    struct until *u = until;
    const char *colon = memchr(text, ':', len);
    double percent, width = 0;
    if (colon == text + 1 && text[0] == 'n') {
        bool is_number = num_scaled(colon + 1, len - 2, 1000, &u->answers);
        return is_number && u->answers > 0 ? NULL : "the number of --until is 1 at least";
    }
    if (colon == NULL || text[0] != 'p') {
        return "--until takes pPERCENTILE:WIDTH and n:ANSWERS, e.g. p99:2%";
    }
    if (!num_double(text + 1, (size_t)(colon - text) - 1, &percent) || percent <= 0 ||
        percent >= 100) {
        return "the percentile of --until is above 0 and below 100";
    }
    if (!num_share(colon + 1, len - (size_t)(colon + 1 - text), &width, NULL) ||
        width <= 0 || width > WIDTH_MAX) {
        return "the width of --until is a share of the percentile, like 2%";
    }
    if (u->count == UNTIL_MAX) {
        return "--until takes at most 8 percentiles";
    }
    u->wants[u->count].q = percent / 100;
    u->wants[u->count++].width = width;
    return NULL;
}

const char *
until_parse(void *until, const char *text)
{
    *(struct until *)until = (struct until){.count = 0};
    return part_each(text, strlen(text), ',', parse_one, until);
}

void
until_auto(struct until *u)
{
    *u = (struct until){.wants = {{.95, AUTO_WIDTH}, {.99, AUTO_WIDTH}}, .count = 2};
}

bool
until_is_given(const struct until *u)
{
    return u->count > 0 || u->answers > 0;
}

/* Those never answered are slower than all others; infinite when the percentile is one of them. */
static double
quantile_of_all(const struct series *s, double q)
{
    const struct hist *h = s->now.latency;
    double of_answered = q * (1 + (double)s->now.censored / (double)hist_count(h));
    return of_answered > 1 ? INFINITY : (double)hist_quantile(h, of_answered);
}

double
until_width(const struct series *s, double q)
{
    struct ci ci = series_ci(s, q);
    if (!ci.is_known || ci.high >= 1) {
        return INFINITY;
    }
    double at = quantile_of_all(s, q), high = quantile_of_all(s, ci.high);
    return isinf(high) || at <= 0 ? INFINITY : (high - quantile_of_all(s, ci.low)) / at;
}

uint64_t
until_answers(const struct series *s)
{
    return s->now.requests + s->now.errors;
}

bool
until_is_met(const struct until *u, const struct series *s)
{
    for (unsigned i = 0; i < u->count; i++) {
        if (until_width(s, u->wants[i].q) > u->wants[i].width) {
            return false;
        }
    }
    return until_answers(s) >= u->answers;
}
