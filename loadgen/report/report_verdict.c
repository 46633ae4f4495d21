/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * report_verdict: each check that failed, in words, with what to do about it.
 */
#include "loadgen/report/report.h"

#include <assert.h>

#define IDLE_CPU "pin the client to an idle CPU (--affinity), lower --qps, or raise -T"

enum form {
    SAYS,   /* no number */
    COUNTS, /* "3 errors" */
    SHARES, /* "client CPU 97.00% > 95%" */
    TIMES,  /* "1.20 > 1" */
};

/* In the order in which they explain each other: the first one is told first. */
static const struct reason {
    enum result_check check;
    enum form form;
    const char *before, *sign, *after, *advice;
} reasons[] = {
    {CHECK_COMPLETE, SAYS, "interrupted", "", "",
     "let the run end, or make it shorter (--time)"},
    {CHECK_ANSWERS, SAYS, "no request was answered", "", "",
     "check --server and --protocol, and that the server is not stuck"},
    {CHECK_AGENTS, COUNTS, "", "", " agents lost",
     "see why in their lines below, or choose what becomes of the run "
     "(--on-agent-loss)"},
    {CHECK_VALUES, COUNTS, "", "", " verification errors",
     "store the records again (without --noload), or use keys that no other client sets "
     "(--key-prefix)"},
    {CHECK_ERRORS, COUNTS, "", "", " errors",
     "see their kinds below, and the server's log and limits"},
    {CHECK_SERVED, COUNTS, "", "", " connections had no answer in all the run",
     "raise the server's limit of connections (memcached -c), or lower -c"},
    {CHECK_SEARCH, SAYS, "the search found no rate", "", "",
     "loosen the goal, or raise --time and --search-budget"},
    {CHECK_STEAL, SHARES, "steal: ", ">", " of the CPUs' time went to others",
     "use a machine whose CPUs are not shared"},
    {CHECK_CPU_WAIT, SHARES, "cpu_wait: ", ">", " of the time without a CPU",
     "give the client CPUs of its own (--cpus)"},
    {CHECK_CPU, SHARES, "client CPU ", ">", "",
     "raise -T, lower --qps, or add machines (--agent)"},
    {CHECK_READER, COUNTS, "", "", " requests of the trace came too late from its file",
     "make the trace smaller (mcload convert), or lower the rate"},
    {CHECK_LATENESS, TIMES, "lateness: p99 of the client's lag is ", ">",
     " of the latency", IDLE_CPU},
    {CHECK_ADHERENCE, SHARES, "adherence: ", "<", " sent within 1 ms",
     "raise -c or --depth if all connections are busy; else " IDLE_CPU},
    {CHECK_ARRIVALS, SHARES, "arrivals: ", ">", " of the gaps are not those asked for",
     IDLE_CPU},
    {CHECK_RATE, SHARES, "achieved ", "<", " of offered",
     "lower --qps, or raise -c if the server is not at its limit"},
    {CHECK_STEADY, SHARES, "not stationary: ", ">", " from half to half",
     "warm up for longer (--warmup=auto), or run for longer (--time)"},
    {CHECK_LITTLE, SHARES, "Little's law: ", ">",
     " of the requests are not accounted for",
     "repeat the run; if it stays, a clock is wrong or mcload has a bug"},
};
#define REASONS (sizeof reasons / sizeof reasons[0])
static_assert(REASONS == CHECKS, "a row each");

static const struct reason client_was_limit = {
    CHECK_SEARCH, SAYS, "the client was the limit",
    "",           "",   "raise -T, or add machines (--agent)"};

static void
print_reason(const struct reason *reason, const char *class, const struct check *c,
             FILE *out)
{
    const struct reason *r =
        reason->check == CHECK_SEARCH && c->value > 0 ? &client_was_limit : reason;
    fprintf(out, "INVALID: %s%s%s", class, class[0] != '\0' ? ": " : "", r->before);
    switch (r->form) {
    case SAYS:
        break;
    case COUNTS:
        fprintf(out, "%.0f", c->value);
        break;
    case SHARES:
        fprintf(out, "%.2f%% %s %g%%", 100 * c->value, r->sign, 100 * c->limit);
        break;
    case TIMES:
        fprintf(out, "%.2f %s %g", c->value, r->sign, c->limit);
        break;
    }
    fprintf(out, "%s: %s", r->after, r->advice);
}

/* Class number `c`, or all of the run behind the last: that answers for what no class does,
 * and for everything when there is one class. */
static const struct check *
check_of(const struct result *r, enum result_check check, unsigned c)
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
    for (size_t i = 0; i < REASONS; i++) {
        for (unsigned c = 0; c <= classes; c++) {
            const struct check *check = check_of(r, reasons[i].check, c);
            if (check == NULL || !check->applies || check->is_good) {
                continue;
            }
            if (n < most) {
                fputs(n > 0 ? "\n" : "", out);
                print_reason(&reasons[i], c < classes ? r->classes[c].name : "", check,
                             out);
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
