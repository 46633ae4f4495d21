/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/check.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"

#define LIMIT_MAX 1e9
#define NAME_LEN_MAX 32

static const struct {
    const char *name;
    double limit;
    bool is_fixed; /* a run that fails it is worth nothing, whoever asks */
} table[] = {
    [CHECK_ANSWERS] = {"answers", 1, true},
    [CHECK_CPU] = {"client_cpu", 0.95, false},     /* of a CPU, by the busiest thread */
    [CHECK_RATE] = {"achieved_rate", 0.99, false}, /* of what was offered */
    [CHECK_ADHERENCE] = {"adherence_1ms", 0.95, false}, /* sent within 1 ms */
    [CHECK_ERRORS] = {"errors", 0, false},
    [CHECK_COMPLETE] = {"interrupted", 0, true},
    /* From the first half of a run to the second, when chance alone would hardly do it: of
     * the mean latency. That of the hit ratio is RESULT_DRIFT_HITS_MAX. */
    [CHECK_STEADY] = {"stationarity", 0.5, false},
    [CHECK_SEARCH] = {"search", 0, true},
    [CHECK_AGENTS] = {"agents_lost", 0, true},
    [CHECK_VALUES] = {"verification", 0, false},
    [CHECK_READER] = {"trace_read_ahead", 0, false}, /* requests read too late */
    /* Share of gaps that are not those of the schedule by more than a quarter; see gaps.h. */
    [CHECK_ARRIVALS] = {"arrivals", 0.25, false},
    /* Beyond what the window's edges explain; spec: N = X R within 2 %. */
    [CHECK_LITTLE] = {"little", 0.02, false},
    /* The client's own lag, p99, over the latency from issue, p99; see result.h. */
    [CHECK_LATENESS] = {"lateness", 1, false},
    [CHECK_STEAL] = {"steal", 0.02, false},       /* of the time of the CPUs used */
    [CHECK_CPU_WAIT] = {"cpu_wait", 0.10, false}, /* of a thread's time */
    [CHECK_SERVED] = {"unserved_connections", 0, false},
};
static_assert(sizeof table / sizeof table[0] == CHECKS, "a row each");

const char *
check_name(enum result_check check)
{
    must((unsigned)check < CHECKS);
    return table[check].name;
}

void
check_limits_init(struct check_limits *l)
{
    *l = (struct check_limits){.limit = {0}};
    for (unsigned i = 0; i < CHECKS; i++) {
        l->limit[i] = table[i].limit;
    }
}

static bool
find(const char *name, size_t len, enum result_check *check)
{
    for (unsigned i = 0; i < CHECKS; i++) {
        if (strlen(table[i].name) == len && memcmp(table[i].name, name, len) == 0) {
            *check = (enum result_check)i;
            return true;
        }
    }
    return false;
}

static const char *
parse_one(struct check_limits *l, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    enum result_check check;
    double limit;
    if (colon == NULL || !find(text, (size_t)(colon - text), &check)) {
        return "a check is NAME:LIMIT or NAME:off, with a name as in the JSON";
    }
    if (table[check].is_fixed) {
        return "a run that fails this check is worth nothing: it cannot be changed";
    }
    const char *value = colon + 1;
    size_t left = len - (size_t)(value - text);
    l->is_off[check] = left == 3 && memcmp(value, "off", left) == 0;
    if (l->is_off[check]) {
        return NULL;
    }
    bool is_percent = left > 1 && value[left - 1] == '%';
    if (!num_double(value, left - (is_percent ? 1 : 0), &limit) || limit < 0 ||
        limit > LIMIT_MAX) {
        return "the limit of a check is a number, a share like 2%, or off";
    }
    l->limit[check] = is_percent ? limit / 100 : limit;
    return NULL;
}

const char *
check_limits_parse(struct check_limits *l, const char *text)
{
    for (const char *p = text;; p++) {
        size_t len = strcspn(p, ",");
        const char *wrong = parse_one(l, p, len);
        if (wrong != NULL) {
            return wrong;
        }
        p += len;
        if (*p == '\0') {
            return NULL;
        }
    }
}

struct check
check_at_most(const struct check_limits *l, enum result_check check, bool applies,
              double value)
{
    double limit = l->limit[check];
    return (struct check){applies && !l->is_off[check], value <= limit, value, limit};
}

struct check
check_at_least(const struct check_limits *l, enum result_check check, bool applies,
               double value)
{
    double limit = l->limit[check];
    return (struct check){applies && !l->is_off[check], value >= limit, value, limit};
}
