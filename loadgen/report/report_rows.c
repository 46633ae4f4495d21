/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What all forms of a report share.
 */
#include "loadgen/report/report.h"

#include <math.h>
#include <string.h>

static const char *
ordinal_ending(unsigned n)
{
    unsigned last = n % 10;
    if (n / 10 % 10 == 1) {
        return "th";
    }
    return last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
}

void
report_column_name(double q, char name[REPORT_NAME_MAX])
{
    double percent = q * 100;
    if (q >= 1) {
        snprintf(name, REPORT_NAME_MAX, "max");
    } else if (fabs(percent - round(percent)) < 1e-9) {
        unsigned n = (unsigned)round(percent);
        snprintf(name, REPORT_NAME_MAX, "%u%s", n, ordinal_ending(n));
    } else {
        /* 99.9 -> p999: a point would end the header for existing parsers. */
        char digits[REPORT_NAME_MAX];
        snprintf(digits, sizeof digits, "%.10g", percent);
        char *to = name;
        *to++ = 'p';
        for (const char *p = digits; *p != '\0' && to < name + REPORT_NAME_MAX - 1; p++) {
            if (*p != '.') {
                *to++ = *p;
            }
        }
        *to = '\0';
    }
}

/* Requests of a class without answer that are updates: what was never sent has no verb yet;
 * it is shared out as the mix has it. */
static uint64_t
updates_without_answer(const struct result *r, const struct lclass *c)
{
    double share = mix_share_of_updates(&c->mix);
    double censored = (double)result_censored(&r->total);
    return (uint64_t)(censored * share + 0.5);
}

void
report_table_of(const struct result *r, const struct options *o, unsigned c,
                struct report_table *table)
{
    bool is_all = c == REPORT_ALL;
    const struct tally *t = is_all ? result_shown(r) : &r->classes[c].total;
    enum tally_from from = is_all ? r->from : r->classes[c].from;
    uint64_t updates = 0;
    for (unsigned i = 0; i < o->classes_len; i++) {
        bool counts = is_all ? !r->has_shown || r->shown == i : c == i;
        const struct result *of = r->classes_len > 1 ? &r->classes[i] : r;
        updates += counts ? updates_without_answer(of, &o->classes[i]) : 0;
    }
    uint64_t reads = result_censored(t) - updates;
    *table = (struct report_table){
        .tally = t,
        .rows =
            {
                [TALLY_READ] = {"read", t->latency[from][TALLY_READ], reads},
                [TALLY_UPDATE] = {"update", t->latency[from][TALLY_UPDATE], updates},
            },
    };
}

struct report_totals
report_totals(const struct result *r)
{
    const struct tally *t = &r->total;
    double keys = (double)ctr_get(&t->keys);
    return (struct report_totals){
        .done = (double)ctr_get(&t->done[TALLY_READ]) +
                (double)ctr_get(&t->done[TALLY_UPDATE]),
        .seconds = r->elapsed_s,
        .keys = keys,
        .misses = keys - (double)ctr_get(&t->hits),
        .skipped = (double)ctr_get(&t->skipped),
        .offered = (double)ctr_get(&t->offered),
        .rx = (double)ctr_get(&t->rx_bytes),
        .tx = (double)ctr_get(&t->tx_bytes),
    };
}

void
report_print_counts(const struct result *r, const struct report_totals *t, FILE *out)
{
    fprintf(out, "\nTotal QPS = %.1f (%.0f / %.1fs)\n", result_ratio(t->done, t->seconds),
            t->done, t->seconds);
    if (r->peak_qps > 0) {
        fprintf(out, "Peak QPS  = %.1f\n", r->peak_qps);
    }
    fputc('\n', out);
    fprintf(out, "Misses = %.0f (%.1f%%)\n", t->misses,
            100 * result_ratio(t->misses, t->keys));
    fprintf(out, "Skipped TXs = %.0f (%.1f%%)\n\n", t->skipped,
            100 * result_ratio(t->skipped, t->offered));
}
