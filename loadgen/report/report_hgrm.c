/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report.h"

#include <math.h>

#include "loadgen/report/report_parts.h"

#define STEPS_EACH_HALF 5

static void
print_line(uint64_t value, uint64_t below, uint64_t all, FILE *out)
{
    double share = (double)below / (double)all;
    fprintf(out, "%12.3f %2.12f %10ju", report_us(value), share, (uintmax_t)below);
    if (below < all) {
        fprintf(out, " %14.2f\n", 1 / (1 - share));
    } else {
        fputc('\n', out);
    }
}

/* The next share at which there is a line: so many steps to each half of what is left. */
static double
next_step(double share)
{
    double halves = floor(log2(1 / (1 - share))) + 1;
    return share + 1 / (STEPS_EACH_HALF * exp2(halves));
}

void
report_hgrm(const struct result *r, enum counters_from from, FILE *out)
{
    const struct hist *h = r->all[from];
    uint64_t all = hist_count(h) + result_censored(&r->total);
    uint32_t at = 0;
    uint64_t low, high, count, below = 0;
    double step = 0;
    fprintf(out, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
            "1/(1-Percentile)");
    while (hist_next(h, &at, &low, &high, &count)) {
        below += count;
        uint64_t value = high < hist_max(h) ? high : hist_max(h);
        if (below < all && (double)below / (double)all >= step) {
            print_line(value, below, all, out);
            while (step <= (double)below / (double)all) {
                step = next_step(step);
            }
        } else if (below == hist_count(h)) {
            print_line(value, below, all, out);
        }
    }
    fprintf(out, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
            hist_mean(h) / REPORT_NS_PER_US, hist_stddev(h) / REPORT_NS_PER_US);
    fprintf(out, "#[Max     = %12.3f, Total count    = %12ju]\n", report_us(hist_max(h)),
            (uintmax_t)all);
    fprintf(out, "#[Buckets = %12d, SubBuckets     = %12d]\n", 64 - COUNTERS_SUB_BITS,
            1 << (COUNTERS_SUB_BITS + 1));
}
