/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report_sizes.h"

#include "loadgen/report/report.h"

static const struct {
    const char *head, *name;
    double q;
} points[] = {{"50th", "p50", .50}, {"95th", "p95", .95}, {"99th", "p99", .99}};
#define POINTS (sizeof points / sizeof points[0])

#define KIB 1024

static void
print_size(unsigned i, FILE *out)
{
    char text[32];
    bool is_last = i == SIZE_CLASSES - 1;
    uint64_t bytes = size_class_most(is_last ? i - 1 : i);
    snprintf(text, sizeof text, "%s%ju%s",
             is_last ? ">" : "<=", (uintmax_t)(bytes < KIB ? bytes : bytes / KIB),
             bytes < KIB ? "B" : "KiB");
    fprintf(out, "%-8s", text);
}

void
report_sizes_text(const struct tally *t, FILE *out)
{
    unsigned used = 0;
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        used += hist_count(t->sizes[i]) > 0 ? 1 : 0;
    }
    if (used < 2) {
        return;
    }
    fprintf(out, "%-8s %10s %8s", "#values", "gets", "avg");
    for (size_t p = 0; p < POINTS; p++) {
        fprintf(out, " %8s", points[p].head);
    }
    fputc('\n', out);
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        const struct hist *h = t->sizes[i];
        if (hist_count(h) == 0) {
            continue;
        }
        print_size(i, out);
        fprintf(out, " %10ju %8.1f", (uintmax_t)hist_count(h),
                hist_mean(h) / REPORT_NS_PER_US);
        for (size_t p = 0; p < POINTS; p++) {
            fprintf(out, " %8.1f",
                    (double)hist_quantile(h, points[p].q) / REPORT_NS_PER_US);
        }
        fputc('\n', out);
    }
    fputc('\n', out);
}

void
report_sizes_json(const struct tally *t, struct json *j)
{
    json_open(j, "sizes", '[');
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        const struct hist *h = t->sizes[i];
        if (hist_count(h) == 0) {
            continue;
        }
        json_open(j, NULL, '{');
        if (i < SIZE_CLASSES - 1) {
            json_u64(j, "up_to", size_class_most(i));
        } else {
            json_nothing(j, "up_to");
        }
        json_u64(j, "count", hist_count(h));
        json_number(j, "mean", hist_mean(h));
        for (size_t p = 0; p < POINTS; p++) {
            json_u64(j, points[p].name, hist_quantile(h, points[p].q));
        }
        json_u64(j, "min", hist_min(h));
        json_u64(j, "max", hist_max(h));
        json_exact(j, "sum", hist_sum(h));
        json_exact(j, "sumsq", hist_sum_squares(h));
        json_u64(j, "overflow", hist_overflow(h));
        report_buckets_json(h, j);
        json_close(j, '}');
    }
    json_close(j, ']');
}
