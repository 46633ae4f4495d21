/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run_state.h"

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
    hist_destroy(&p->between);
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
    hist_since(p->between, p->now, p->before);
    if (hist_count(p->between) > 0) {
        fprintf(out, "  p50 %.1f us  p99 %.1f us",
                (double)hist_quantile(p->between, 0.5) / 1e3,
                (double)hist_quantile(p->between, 0.99) / 1e3);
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
