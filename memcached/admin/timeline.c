/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "admin/timeline.h"

/* A look that comes a little early is as good as one that is late by the time between two. */
#define EARLY (NSEC_PER_SEC / 2)

static bool
create_mark(struct timeline_mark *m, unsigned workers, unsigned sub_bits, uint64_t max)
{
    m->threads = calloc(workers, sizeof *m->threads);
    bool is_good = m->threads != NULL;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        m->delays[c] = hist_create(sub_bits, max);
        is_good = is_good && m->delays[c] != NULL;
    }
    return is_good;
}

static void
destroy_mark(struct timeline_mark *m)
{
    free(m->threads);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        hist_destroy(&m->delays[c]);
    }
}

bool
timeline_init(struct timeline *t, unsigned workers, unsigned sub_bits,
              uint64_t max_delay_ns)
{
    *t = (struct timeline){.workers = workers};
    t->delta = hist_create(sub_bits, max_delay_ns);
    t->last = calloc(workers, sizeof *t->last);
    bool has_marks = create_mark(&t->before, workers, sub_bits, max_delay_ns);
    has_marks = create_mark(&t->now, workers, sub_bits, max_delay_ns) && has_marks;
    return has_marks && t->delta != NULL && t->last != NULL;
}

void
timeline_fini(struct timeline *t)
{
    destroy_mark(&t->before);
    destroy_mark(&t->now);
    hist_destroy(&t->delta);
    free(t->last);
}

struct timeline_mark *
timeline_mark(struct timeline *t)
{
    struct timeline_mark *m = &t->now;
    m->counts = (struct timeline_counts){.hits = 0};
    memset(m->threads, 0, t->workers * sizeof *m->threads);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        hist_reset(m->delays[c]);
    }
    return m;
}

/* The mark becomes the one that the next step is compared with. */
static void
keep_mark(struct timeline *t, nsec_t now)
{
    struct timeline_mark mark = t->now;
    t->now = t->before;
    t->before = mark;
    t->before.at = now;
}

void
timeline_begin(struct timeline *t, nsec_t now)
{
    t->begun = now;
    t->due = now + TIMELINE_STEP;
    keep_mark(t, now);
}

bool
timeline_is_due(const struct timeline *t, nsec_t now)
{
    return now + EARLY >= t->due;
}

/* ---- differences ---------------------------------------------------------------------- */

/* Totals never shrink, but a kernel may stop to tell the time of a thread. */
static uint64_t
since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static struct timeline_counts
counts_since(const struct timeline_counts *now, const struct timeline_counts *before)
{
    struct timeline_counts n = {.hits = since(now->hits, before->hits),
                                .misses = since(now->misses, before->misses)};
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        n.requests[c] = since(now->requests[c], before->requests[c]);
        n.refused[c] = since(now->refused[c], before->refused[c]);
    }
    return n;
}

static void
take_delays(struct timeline *t, struct timeline_sample *s)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        hist_since(t->delta, t->now.delays[c], t->before.delays[c]);
        s->has_delay[c] = hist_count(t->delta) > 0;
        s->p50_ns[c] = hist_quantile(t->delta, 0.5);
        s->p99_ns[c] = hist_quantile(t->delta, 0.99);
    }
}

static void
add_share(struct timeline_share *sum, nsec_t part, nsec_t whole, unsigned workers)
{
    double share = (double)part / (double)whole;
    share = share < 1 ? share : 1; /* the kernel adds up at its ticks */
    sum->mean += share / workers;
    sum->most = share > sum->most ? share : sum->most;
}

static void
take_threads(struct timeline *t, struct timeline_sample *s)
{
    for (unsigned i = 0; i < t->workers; i++) {
        const struct timeline_thread *now = &t->now.threads[i];
        const struct timeline_thread *before = &t->before.threads[i];
        struct timeline_thread *last = &t->last[i];
        last->run_ns = since(now->run_ns, before->run_ns);
        last->wait_ns = since(now->wait_ns, before->wait_ns);
        add_share(&s->busy, last->run_ns, s->length, t->workers);
        add_share(&s->wait, last->wait_ns, s->length, t->workers);
    }
}

/* The steps end at multiples of TIMELINE_STEP from the beginning; after a late one the next that is
 * at least half a step away. */
static nsec_t
next_due(const struct timeline *t, nsec_t now)
{
    nsec_t ahead = now - t->begun + TIMELINE_STEP + TIMELINE_STEP / 2;
    return t->begun + ahead / TIMELINE_STEP * TIMELINE_STEP;
}

void
timeline_step(struct timeline *t, nsec_t now, const struct timeline_gauges *gauges)
{
    must(now > t->before.at);
    t->newest = t->count > 0 ? (t->newest + 1) % TIMELINE_STEPS : 0;
    t->count += t->count < TIMELINE_STEPS;
    struct timeline_sample *s = &t->samples[t->newest];
    *s = (struct timeline_sample){
        .at = now,
        .length = now - t->before.at,
        .counts = counts_since(&t->now.counts, &t->before.counts),
        .gauges = *gauges,
    };
    take_delays(t, s);
    take_threads(t, s);
    t->due = next_due(t, now);
    keep_mark(t, now);
}

/* ---- reading -------------------------------------------------------------------------- */

unsigned
timeline_count(const struct timeline *t, nsec_t now)
{
    unsigned n = 0;
    while (n < t->count && now - timeline_sample(t, n)->at < TIMELINE_SPAN) {
        n++;
    }
    return n;
}

const struct timeline_sample *
timeline_sample(const struct timeline *t, unsigned back)
{
    must(back < t->count);
    return &t->samples[(t->newest + TIMELINE_STEPS - back) % TIMELINE_STEPS];
}
