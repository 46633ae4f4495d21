/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/recorder.h"

#include "core/latency.h"
#include "front/front.h"
#include "place/threadstat.h"

/* ---- totals --------------------------------------------------------------------------- */

void
recorder_count(const struct stats *st, struct timeline_counts *counts)
{
    for (unsigned i = 0; i < st->worker_count; i++) {
        const struct worker *w = &st->workers[i];
        for (unsigned c = 0; c < CLASS_COUNT; c++) {
            counts->requests[c] += ctr_get(&w->core.classes[c].served);
            counts->refused[c] += ctr_get(&w->core.admission.limits.ctr[c].rejected) +
                                  ctr_get(&w->core.admission.slo.shed[c]);
        }
        counts->misses += ctr_get(&w->ctr.get_misses);
        for (unsigned slot = 0; slot < STORE_SLOTS; slot++) {
            for (unsigned list = 0; list < STORE_LISTS; list++) {
                counts->hits += ctr_get(&w->ctr.slab[slot].get_hits[list]);
            }
        }
    }
}

/* As front/headroom.c has it: a kernel may not tell the time of threads. */
static struct timeline_thread
time_of(const struct worker *w)
{
    struct threadstat stat = {0};
    threadstat_read_times(atomic_load(&w->tid), &stat);
    if (stat.run_ns == 0) {
        stat.run_ns = ctr_get(&w->core.ctr.busy_ns);
    }
    return (struct timeline_thread){.run_ns = stat.run_ns, .wait_ns = stat.wait_ns};
}

static void
take_mark(struct recorder *s)
{
    struct timeline_mark *mark = timeline_mark(&s->timeline);
    recorder_count(s->stats, &mark->counts);
    for (unsigned i = 0; i < s->stats->worker_count; i++) {
        const struct worker *w = &s->stats->workers[i];
        mark->threads[i] = time_of(w);
        for (unsigned c = 0; c < CLASS_COUNT; c++) {
            hist_merge(mark->delays[c], w->core.latency.stages[c][LATENCY_DELAY]);
        }
    }
}

/* ---- gauges --------------------------------------------------------------------------- */

static void
measure(struct stats *st, nsec_t now, struct timeline_gauges *g)
{
    const struct limit *limit = &st->shared->core.limiter.total;
    struct store *store = st->shared->store;
    struct store_totals totals;
    store_totals(store, &totals);
    *g = (struct timeline_gauges){
        .headroom_pct = headroom_pct(st),
        .level_pct = slo_level_pct(st),
        .tokens = limit_tokens(limit, now),
        .limit = front_relaxed(&limit->rate),
        .item_bytes = totals.item_bytes,
        .connections =
            atomic_load_explicit(&st->shared->open_conns, memory_order_relaxed),
    };
    for (unsigned id = 1; id <= store_class_count(store); id++) {
        struct store_class_stats class;
        store_class_stats(store, id, clock_rel(now), &class);
        g->pages[id] = class.total_pages;
    }
}

/* ---- steps ---------------------------------------------------------------------------- */

struct recorder *
recorder_create(struct stats *st)
{
    struct recorder *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->stats = st;
    if (!timeline_init(&s->timeline, st->worker_count, LATENCY_SUB_BITS,
                       LATENCY_MAX_NS)) {
        recorder_destroy(&s);
    }
    return s;
}

void
recorder_destroy(struct recorder **s)
{
    if (*s != NULL) {
        timeline_fini(&(*s)->timeline);
        free(*s);
        *s = NULL;
    }
}

void
recorder_second(struct recorder *s)
{
    nsec_t now = clock_now();
    struct timeline *t = &s->timeline;
    if (t->due == 0) {
        take_mark(s);
        timeline_begin(t, now);
    } else if (timeline_is_due(t, now)) {
        struct timeline_gauges gauges;
        take_mark(s);
        measure(s->stats, now, &gauges);
        timeline_step(t, now, &gauges);
    }
}
