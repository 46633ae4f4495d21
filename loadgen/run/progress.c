/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/progress.h"

#include <math.h>

/* Back to the start of the line, and clear it. */
#define LINE_START "\r\033[K"

void
progress_init(struct progress *p)
{
    *p = (struct progress){
        .now = counters_hist(COUNTERS_SUB_BITS),
        .before = counters_hist(COUNTERS_SUB_BITS),
    };
}

void
progress_reset(struct progress *p)
{
    hist_reset(p->now);
    hist_reset(p->before);
    p->answered = 0;
    p->at = 0;
}

void
progress_fini(struct progress *p)
{
    hist_destroy(&p->now);
    hist_destroy(&p->before);
}

void
progress_load(const struct lthread *threads, unsigned count, uint64_t records, FILE *out)
{
    uint64_t loaded = 0;
    for (unsigned i = 0; i < count; i++) {
        loaded += ctr_get(&threads[i].counters.loaded);
    }
    fprintf(out, LINE_START "loading: %ju", (uintmax_t)loaded);
    if (records > 0) {
        fprintf(out, " of %ju", (uintmax_t)records);
    }
    fputs(" records", out);
    fflush(out);
}

/* A quantile of what came to `now` since `before`. */
static uint64_t
quantile_since(const struct progress *p, double q)
{
    uint64_t total = hist_count(p->now) - hist_count(p->before);
    uint64_t rank = (uint64_t)ceil(q * (double)total);
    uint64_t seen = 0, low = 0, high = 0, count;
    uint64_t low_before = 0, high_before = 0, count_before = 0;
    uint32_t at = 0, at_before = 0;
    bool more =
        hist_next(p->before, &at_before, &low_before, &high_before, &count_before);
    while (total > 0 && hist_next(p->now, &at, &low, &high, &count)) {
        if (more && low_before == low) {
            count -= count_before;
            more = hist_next(p->before, &at_before, &low_before, &high_before,
                             &count_before);
        }
        seen += count;
        if (seen >= rank) {
            return low + (high - low) / 2;
        }
    }
    return high;
}

void
progress_run(struct progress *p, const struct lthread *threads, unsigned count,
             const struct drive_window *window, nsec_t now, FILE *out)
{
    struct hist *old = p->before;
    p->before = p->now;
    p->now = old;
    hist_reset(p->now);
    uint64_t answered = 0, errors = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct counters *t = &threads[i].counters;
        hist_merge(p->now, t->latency[FROM_INTENDED][COUNTERS_READ]);
        hist_merge(p->now, t->latency[FROM_INTENDED][COUNTERS_UPDATE]);
        answered += ctr_get(&t->answered);
        errors += counters_error_sum(t);
    }
    nsec_t since = p->at != 0 ? p->at : window->begin;
    double seconds = now > since ? (double)(now - since) / 1e9 : 1;
    double elapsed = ((double)now - (double)window->begin) / 1e9;
    double planned = (double)(window->end - window->begin) / 1e9;
    fprintf(out, LINE_START "%.0f/%.0f s%s  %.0f/s", elapsed, planned,
            now < window->start ? " warm-up" : "",
            (double)(answered - p->answered) / seconds);
    if (hist_count(p->now) > hist_count(p->before)) {
        fprintf(out, "  p50 %.1f us  p99 %.1f us", (double)quantile_since(p, 0.5) / 1e3,
                (double)quantile_since(p, 0.99) / 1e3);
    }
    fprintf(out, "  errors %ju", (uintmax_t)errors);
    fflush(out);
    p->answered = answered;
    p->at = now;
}

void
progress_end(FILE *out)
{
    fputs(LINE_START, out);
    fflush(out);
}
