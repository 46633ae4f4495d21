/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * report_verdict: each check that failed, in words.
 */
#include "loadgen/report/report.h"

/* What the client could not do, or was kept from. */
static void
print_client(enum result_check check, const struct check *c, FILE *out)
{
    double value = 100 * c->value, limit = 100 * c->limit;
    switch (check) {
    case CHECK_CPU:
        fprintf(out, "client CPU %.1f%% > %g%%", value, limit);
        break;
    case CHECK_RATE:
        fprintf(out, "achieved %.2f%% < %g%% of offered", value, limit);
        break;
    case CHECK_ADHERENCE:
        fprintf(out, "adherence: %.2f%% < %g%% sent within 1 ms", value, limit);
        break;
    case CHECK_ARRIVALS:
        fprintf(out, "arrivals: %.1f%% > %g%% of the gaps are not those asked for", value,
                limit);
        break;
    case CHECK_LATENESS:
        fprintf(out, "lateness: p99 of the client's lag is %.2f > %g of the latency",
                c->value, c->limit);
        break;
    case CHECK_STEAL:
        fprintf(out, "steal: %.1f%% > %g%% of the CPUs' time went to others", value,
                limit);
        break;
    case CHECK_CPU_WAIT:
        fprintf(out, "cpu_wait: %.1f%% > %g%% of the time without a CPU", value, limit);
        break;
    default:
        unreachable();
    }
}

static void
print_check(enum result_check check, const struct check *c, FILE *out)
{
    switch (check) {
    case CHECK_ANSWERS:
        fputs("no request was answered", out);
        break;
    case CHECK_ERRORS:
        fprintf(out, "%.0f errors", c->value);
        break;
    case CHECK_COMPLETE:
        fputs("interrupted", out);
        break;
    case CHECK_STEADY:
        fprintf(out, "not stationary: %.1f%% > %g%% from half to half", 100 * c->value,
                100 * c->limit);
        break;
    case CHECK_SEARCH:
        fputs(c->value > 0 ? "the client was the limit" : "no rate met the goal", out);
        break;
    case CHECK_SERVED:
        fprintf(out, "%.0f connections had no answer in all the run", c->value);
        break;
    case CHECK_VALUES:
        fprintf(out, "%.0f verification errors", c->value);
        break;
    case CHECK_READER:
        fprintf(out, "%.0f requests of the trace were read too late", c->value);
        break;
    case CHECK_AGENTS:
        fprintf(out, "%.0f agents lost", c->value);
        break;
    case CHECK_LITTLE:
        fprintf(out, "Little's law: %.1f%% > %g%% of the requests are not accounted for",
                100 * c->value, 100 * c->limit);
        break;
    default:
        print_client(check, c, out);
    }
}

static void
print_failed(const struct result *r, const char *class, const char **before, FILE *out)
{
    for (unsigned i = 0; i < CHECKS; i++) {
        const struct check *c = &r->checks[i];
        if (c->applies && !c->is_good) {
            fprintf(out, "%s%s%s", *before, class, class[0] != '\0' ? ": " : "");
            print_check((enum result_check)i, c, out);
            *before = ", ";
        }
    }
}

void
report_verdict(const struct result *r, FILE *out)
{
    const char *before = "INVALID: ";
    if (r->is_valid) {
        fputs("VALID\n", out);
        return;
    }
    if (r->classes_len <= 1) {
        print_failed(r, "", &before, out);
    }
    for (unsigned i = 0; r->classes_len > 1 && i < r->classes_len; i++) {
        print_failed(&r->classes[i], r->classes[i].name, &before, out);
    }
    if (r->classes_len > 1) { /* what no class answers for */
        struct result whole = {.threads = 0};
        whole.checks[CHECK_SEARCH] = r->checks[CHECK_SEARCH];
        whole.checks[CHECK_AGENTS] = r->checks[CHECK_AGENTS];
        print_failed(&whole, "", &before, out);
    }
    fputc('\n', out);
}
