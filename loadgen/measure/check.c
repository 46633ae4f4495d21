/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/check.h"

#include "base/num.h"
#include "base/part.h"

#define LIMIT_MAX 1e9

const struct check_kind check_kinds[CHECKS] = {
#define CHECK(id, name, limit, sense, form, before, after, advice)                       \
    {name, limit, CHECK_IS_##sense, CHECK_##form, before, after, advice},
#include "loadgen/measure/checks.def"
#undef CHECK
};

void
check_limits_init(struct check_limits *l)
{
    *l = (struct check_limits){.limit = {0}};
    for (unsigned i = 0; i < CHECKS; i++) {
        l->limit[i] = check_kinds[i].limit;
    }
}

/* A limit that no run misses, or every one, is a slip. NULL, or a sentence. */
static const char *
misfit(unsigned check, double limit, bool is_percent)
{
    if (check_kinds[check].form != CHECK_SHARES) {
        return is_percent ? "this check is no share: its limit is a plain number, like 3"
                          : NULL;
    }
    bool is_change = check == CHECK_STEADY; /* which may be more than all there was */
    return limit <= 1 || (is_change && is_percent)
               ? NULL
               : "the limit of this check is a share: 1 (100%) at most, like 0.95 or 95%";
}

static const char *
parse_one(void *limits, const char *text, size_t len)
{
    struct check_limits *l = limits;
    const char *colon = memchr(text, ':', len);
    size_t name = colon != NULL ? (size_t)(colon - text) : 0;
    const struct check_kind *kind = part_row(PART_ROWS(check_kinds), text, name);
    double limit;
    if (kind == NULL) {
        return "a check is NAME:LIMIT or NAME:off, with a name as in the JSON";
    }
    unsigned check = (unsigned)(kind - check_kinds);
    if (kind->sense >= CHECK_IS_FIXED_MOST) {
        return "a run that fails this check is worth nothing: it cannot be changed";
    }
    const char *value = colon + 1;
    size_t left = len - (size_t)(value - text);
    l->is_off[check] = left == 3 && memcmp(value, "off", left) == 0;
    if (l->is_off[check]) {
        return NULL;
    }
    bool is_percent;
    if (!num_share(value, left, &limit, &is_percent) || limit < 0 ||
        limit > (is_percent ? LIMIT_MAX / 100 : LIMIT_MAX)) {
        return "the limit of a check is a number, a share like 2%, or off";
    }
    l->limit[check] = limit;
    return misfit(check, limit, is_percent);
}

const char *
check_limits_parse(void *limits, const char *text)
{
    return part_each(text, strlen(text), ',', parse_one, limits);
}

bool
check_is_least(enum result_check check)
{
    enum check_sense sense = check_kinds[check].sense;
    return sense == CHECK_IS_LEAST || sense == CHECK_IS_FIXED_LEAST;
}

struct check
check_of(const struct check_limits *l, enum result_check check, bool applies,
         double value)
{
    double limit = l->limit[check];
    bool is_good = check_is_least(check) ? value >= limit : value <= limit;
    return (struct check){applies && !l->is_off[check], is_good, value, limit};
}

/* ---- objective --------------------------------------------------------------------- */

#define LIMIT_MAX_NS 1e12

const char *
objective_parse(void *slo, const char *text)
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
    if (!num_with_unit(colon + 1, strlen(colon + 1), num_times, NUM_TIMES, &limit) ||
        limit < 1 || limit > LIMIT_MAX_NS) {
        return "the time of an objective is a number with ns, us, ms or s";
    }
    *(struct objective *)slo = (struct objective){percent, (nsec_t)(limit + 0.5)};
    return NULL;
}

void
objective_describe(const struct objective *slo, char dst[OBJECTIVE_TEXT_MAX])
{
    size_t unit = NUM_TIMES - 1; /* the largest that it fills */
    while (unit > 1 && (double)slo->limit < num_times[unit].value) {
        unit--;
    }
    snprintf(dst, OBJECTIVE_TEXT_MAX, "p%.10g:%.10g%s", slo->percent,
             (double)slo->limit / num_times[unit].value, num_times[unit].name);
}
