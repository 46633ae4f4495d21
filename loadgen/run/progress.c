/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/progress.h"

/* Back to the start of the line, and clear it. */
#define LINE_START "\r\033[K"

void
progress_init(struct progress *p)
{
    *p = (struct progress){
        .now = counters_hist(COUNTERS_SUB_BITS),
        .before = counters_hist(COUNTERS_SUB_BITS),
        .between = counters_hist(COUNTERS_SUB_BITS),
    };
}

void
progress_reset(struct progress *p, nsec_t since)
{
    hist_reset(p->now);
    hist_reset(p->before);
    p->answered = 0;
    p->at = since;
}

void
progress_fini(struct progress *p)
{
    hist_destroy(&p->now);
    hist_destroy(&p->before);
    hist_destroy(&p->between);
}

void
progress_load(const struct counters *const *all, unsigned count, uint64_t records,
              FILE *out)
{
    uint64_t loaded = 0;
    for (unsigned i = 0; i < count; i++) {
        loaded += ctr_get(&all[i]->loaded);
    }
    fprintf(out, LINE_START "loading: %ju", (uintmax_t)loaded);
    if (records > 0) {
        fprintf(out, " of %ju", (uintmax_t)records);
    }
    fputs(" records", out);
    fflush(out);
}

void
progress_time(const struct progress_span *span, nsec_t now, FILE *out)
{
    fprintf(out, LINE_START "%.0f/%.0f s%s", ((double)now - (double)span->begin) / 1e9,
            (double)(span->end - span->begin) / 1e9, now < span->start ? " warm-up" : "");
    fflush(out);
}

void
progress_run(struct progress *p, const struct counters *const *all, unsigned count,
             const struct progress_span *span, unsigned lost, nsec_t now, FILE *out)
{
    struct hist *old = p->before;
    p->before = p->now;
    p->now = old;
    hist_reset(p->now);
    uint64_t answered = 0, in_window = 0, errors = 0;
    for (unsigned i = 0; i < count; i++) {
        hist_merge(p->now, all[i]->latency[FROM_INTENDED][COUNTERS_READ]);
        hist_merge(p->now, all[i]->latency[FROM_INTENDED][COUNTERS_UPDATE]);
        answered += ctr_get(&all[i]->answered);
        in_window += counters_done(all[i]);
        errors += counters_error_sum(all[i]);
    }
    hist_since(p->between, p->now, p->before);
    /* Before the first line the answers of earlier runs count, too. */
    uint64_t done = p->at == span->start ? in_window : answered - p->answered;
    double seconds = now > p->at ? (double)(now - p->at) / 1e9 : 1;
    progress_time(span, now, out);
    fprintf(out, "  %.0f/s", (double)done / seconds);
    if (hist_count(p->between) > 0) {
        fprintf(out, "  p50 %.1f us  p99 %.1f us",
                (double)hist_quantile(p->between, 0.5) / 1e3,
                (double)hist_quantile(p->between, 0.99) / 1e3);
    }
    fprintf(out, "  errors %ju", (uintmax_t)errors);
    if (lost > 0) {
        fprintf(out, "  agents lost %u", lost);
    }
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
