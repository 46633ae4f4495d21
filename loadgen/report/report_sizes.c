/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/report/report_parts.h"

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
report_sizes_text(const struct counters *t, FILE *out)
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
            fprintf(out, " %8.1f", report_us_at(h, points[p].q));
        }
        fputc('\n', out);
    }
    fputc('\n', out);
}

void
report_sizes_json(const struct counters *t, struct json *j)
{
    json_open(j, "sizes", '[');
    for (unsigned i = 0; i < SIZE_CLASSES; i++) {
        const struct hist *h = t->sizes[i];
        if (hist_count(h) == 0) {
            continue;
        }
        double up_to = i < SIZE_CLASSES - 1 ? (double)size_class_most(i) : INFINITY;
        json_open(j, NULL, '{');
        json_put(j, JSON("up_to", up_to), JSON("count", hist_count(h)),
                 JSON("mean", hist_mean(h)));
        for (size_t p = 0; p < POINTS; p++) {
            json_put(j, JSON(points[p].name, hist_quantile(h, points[p].q)));
        }
        json_put(j, JSON("min", hist_min(h)), JSON("max", hist_max(h)),
                 JSON_EXACT("sum", hist_sum(h)), JSON_EXACT("sumsq", hist_sum_squares(h)),
                 JSON("overflow", hist_overflow(h)));
        report_buckets_json(h, j);
        json_close(j, '}');
    }
    json_close(j, ']');
}
