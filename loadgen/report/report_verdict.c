/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * report_verdict: each check that failed, in words, with what to do about it.
 */
#include "loadgen/report/report.h"

#include <assert.h>
#include <limits.h>

/* As they explain each other: the first one is told first. */
static const enum result_check order[] = {
    CHECK_COMPLETE, CHECK_ANSWERS,  CHECK_AGENTS,    CHECK_VALUES,   CHECK_ERRORS,
    CHECK_SERVED,   CHECK_SEARCH,   CHECK_STEAL,     CHECK_CPU_WAIT, CHECK_CPU,
    CHECK_READER,   CHECK_LATENESS, CHECK_ADHERENCE, CHECK_ARRIVALS, CHECK_RATE,
    CHECK_STEADY,   CHECK_LITTLE,
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
    bool is_whole = check == CHECK_SEARCH || check == CHECK_AGENTS;
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
