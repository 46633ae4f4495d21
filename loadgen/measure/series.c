/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/measure/series.h"

#include <math.h>

#include "base/alloc.h"
#include "loadgen/measure/result.h"

/* All its sums by number: the pieces, then the others; NULL behind the last. */
static struct series_sum *
sum_at(struct series *s, unsigned i)
{
    struct series_sum *others[] = {&s->now, &s->piece_from, &s->row_from, &s->between,
                                   NULL};
    return i < SERIES_PIECES ? &s->pieces[i] : others[i - SERIES_PIECES];
}

struct series *
series_create(nsec_t row_length, bool keeps_latencies)
{
    struct series *s = alloc_zeroed(1, sizeof *s);
    struct series_sum *sum;
    for (unsigned i = 0; (sum = sum_at(s, i)) != NULL; i++) {
        sum->latency = counters_hist(SERIES_SUB_BITS);
    }
    s->row_length = row_length;
    s->looks_each = 1;
    struct series_sum *sums[] = {&s->now, &s->row_from, &s->between};
    for (unsigned i = 0; keeps_latencies && i < sizeof sums / sizeof sums[0]; i++) {
        sums[i]->fine = counters_hist(COUNTERS_SUB_BITS);
    }
    return s;
}

void
series_start(struct series *s, nsec_t start)
{
    must(s->count == 0 && s->looks == 0);
    s->start = start;
    s->next_row = start + s->row_length;
    s->now.to = s->piece_from.to = s->row_from.to = start;
}

void
series_destroy(struct series **series)
{
    struct series *s = *series;
    if (s == NULL) {
        return;
    }
    struct series_sum *sum;
    for (unsigned i = 0; (sum = sum_at(s, i)) != NULL; i++) {
        hist_destroy(&sum->latency);
        hist_destroy(&sum->fine);
    }
    for (unsigned i = 0; i < s->rows_len; i++) {
        packed_fini(&s->rows[i].latencies);
    }
    free(s->rows);
    free(s);
    *series = NULL;
}

static void
hist_copy(struct hist *dst, const struct hist *src)
{
    if (dst != NULL) {
        hist_reset(dst);
        hist_merge(dst, src);
    }
}

/* dst keeps its histograms. */
static void
sum_copy(struct series_sum *dst, const struct series_sum *src)
{
    struct hist *latency = dst->latency, *fine = dst->fine;
    *dst = *src;
    dst->latency = latency;
    dst->fine = fine;
    hist_copy(latency, src->latency);
    hist_copy(fine, src->fine);
}

static void
sum_since(struct series_sum *dst, const struct series_sum *now,
          const struct series_sum *before)
{
    dst->from = before->to;
    dst->to = now->to;
    dst->requests = now->requests - before->requests;
    dst->keys = now->keys - before->keys;
    dst->hits = now->hits - before->hits;
    dst->errors = now->errors - before->errors;
    dst->backlog = now->backlog - before->backlog;
    hist_since(dst->latency, now->latency, before->latency);
    if (dst->fine != NULL && before->fine != NULL) {
        hist_since(dst->fine, now->fine, before->fine);
    }
}

static void
sum_join(struct series_sum *dst, const struct series_sum *next)
{
    dst->to = next->to;
    dst->requests += next->requests;
    dst->keys += next->keys;
    dst->hits += next->hits;
    dst->errors += next->errors;
    dst->backlog += next->backlog;
    hist_merge(dst->latency, next->latency);
}

/* Each two pieces become one. */
static void
halve(struct series *s)
{
    for (unsigned i = 0; i + 1 < s->count; i += 2) {
        sum_join(&s->pieces[i], &s->pieces[i + 1]);
        if (i > 0) {
            sum_copy(&s->pieces[i / 2], &s->pieces[i]);
        }
    }
    s->count /= 2;
    s->looks_each *= 2;
}

static void
add_piece(struct series *s)
{
    if (s->count == SERIES_PIECES) {
        halve(s);
    }
    sum_since(&s->pieces[s->count++], &s->now, &s->piece_from);
    sum_copy(&s->piece_from, &s->now);
    s->looks = 0;
}

static struct series_row *
next_row(struct series *s)
{
    s->rows = alloc_grown(s->rows, s->rows_len, sizeof *s->rows);
    return &s->rows[s->rows_len++];
}

static void
add_row(struct series *s)
{
    struct packed latencies = {NULL, 0};
    struct series_sum *d = &s->between;
    sum_since(d, &s->now, &s->row_from);
    if (d->fine != NULL) {
        packed_make(&latencies, d->fine);
    }
    sum_copy(&s->row_from, &s->now);
    *next_row(s) = (struct series_row){
        .start_s = (double)(d->from - s->start) / 1e9,
        .length_s = (double)(d->to - d->from) / 1e9,
        .requests = d->requests,
        .keys = d->keys,
        .hits = d->hits,
        .errors = d->errors,
        .p50 = hist_quantile(d->latency, .5),
        .p95 = hist_quantile(d->latency, .95),
        .p99 = hist_quantile(d->latency, .99),
        .max = hist_count(d->latency) == 0 ? 0
               : d->fine != NULL           ? hist_max(d->fine)
                                           : hist_max(d->latency),
        .latencies = latencies,
    };
}

static void
add_up(struct series *s, const struct counters *const *counters, unsigned count,
       nsec_t now)
{
    struct series_sum *sum = &s->now;
    sum->to = now;
    sum->requests = sum->keys = sum->hits = sum->errors = sum->censored = 0;
    sum->backlog = 0;
    hist_reset(sum->latency);
    if (sum->fine != NULL) {
        hist_reset(sum->fine);
    }
    for (unsigned i = 0; i < count; i++) {
        const struct counters *t = counters[i];
        for (unsigned verb = 0; verb < COUNTERS_VERBS; verb++) {
            sum->requests += ctr_get(&t->done[verb]);
            hist_merge_coarse(sum->latency, t->latency[FROM_INTENDED][verb]);
            if (sum->fine != NULL) {
                hist_merge(sum->fine, t->latency[FROM_INTENDED][verb]);
            }
        }
        /* Hits first: a reader between the two then sees no more hits than keys. */
        sum->hits += ctr_get(&t->hits);
        sum->keys += ctr_get(&t->keys);
        sum->errors += ctr_get(&t->failed);
        sum->censored += result_censored(t);
        /* What stays without answer at the end has waited until then. */
        sum->backlog +=
            (int64_t)(ctr_get(&t->offered) - counters_done(t) - ctr_get(&t->failed) -
                      ctr_get(&t->skipped) - counters_sum(t->lost));
    }
}

static void
pass_rows(struct series *s, nsec_t now)
{
    while (s->next_row <= now) {
        s->next_row += s->row_length;
    }
}

void
series_skip(struct series *s, const struct counters *const *counters, unsigned count,
            nsec_t now)
{
    add_up(s, counters, count, now);
    sum_copy(&s->piece_from, &s->now);
    sum_copy(&s->row_from, &s->now);
    if (s->row_length > 0) {
        pass_rows(s, now);
    }
}

void
series_look(struct series *s, const struct counters *const *counters, unsigned count,
            nsec_t now)
{
    add_up(s, counters, count, now);
    if (++s->looks >= s->looks_each) {
        add_piece(s);
    }
    if (s->row_length > 0 && now >= s->next_row) {
        add_row(s);
        pass_rows(s, now);
    }
}

void
series_append_rows(struct series *s, struct series *next)
{
    for (unsigned i = 0; i < next->rows_len; i++) {
        *next_row(s) = next->rows[i];
        next->rows[i].latencies = (struct packed){NULL, 0}; /* they have moved */
    }
}

void
series_end(struct series *s)
{
    nsec_t rest = s->now.to - s->piece_from.to;
    bool has_rest = hist_count(s->now.latency) > hist_count(s->piece_from.latency);
    if (s->count > 0 &&
        (rest * 2 < s->pieces[s->count - 1].to - s->pieces[s->count - 1].from)) {
        /* Less than half of a piece: only in equal ones can variances be compared. */
        sum_since(&s->between, &s->now, &s->piece_from);
        sum_join(&s->pieces[s->count - 1], &s->between);
        sum_copy(&s->piece_from, &s->now);
    } else if (rest > 0 || has_rest) {
        add_piece(s);
    }
    has_rest = hist_count(s->now.latency) > hist_count(s->row_from.latency);
    if (s->row_length > 0 && (s->now.to > s->row_from.to || has_rest)) {
        add_row(s);
    }
}

struct ci
series_ci(const struct series *s, double q)
{
    const struct hist *batches[SERIES_PIECES];
    for (unsigned i = 0; i < s->count; i++) {
        batches[i] = s->pieces[i].latency;
    }
    return ci_of(batches, s->count, s->now.latency, q);
}

struct series_growth
series_growth(const struct series *s)
{
    struct series_growth g = {0};
    double squares = 0;
    unsigned n = s->count - s->count / 2;
    for (unsigned i = s->count / 2; i < s->count; i++) {
        double step = (double)s->pieces[i].backlog;
        g.answered += (double)s->pieces[i].requests;
        g.backlog += step;
        squares += step * step;
    }
    g.chance = n < SERIES_STEPS_MIN ? INFINITY
                                    : sqrt(fmax(0, squares - g.backlog * g.backlog / n));
    return g;
}

bool
series_hits_of_halves(const struct series *s, double ratio[2])
{
    double hits[2] = {0}, keys[2] = {0};
    for (unsigned i = 0; i < s->count; i++) {
        hits[i >= s->count / 2] += (double)s->pieces[i].hits;
        keys[i >= s->count / 2] += (double)s->pieces[i].keys;
    }
    if (keys[0] == 0 || keys[1] == 0) {
        return false;
    }
    ratio[0] = hits[0] / keys[0];
    ratio[1] = hits[1] / keys[1];
    return true;
}

unsigned
series_values(const struct series *s, enum series_what what, double *values)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->count; i++) {
        const struct series_sum *p = &s->pieces[i];
        const struct {
            double sum, of;
        } parts[SERIES_WHATS] = {
            [SERIES_LATENCY] = {hist_sum(p->latency), (double)hist_count(p->latency)},
            [SERIES_HIT_RATIO] = {(double)p->hits, (double)p->keys},
        };
        if (parts[what].of > 0) {
            values[n++] = parts[what].sum / parts[what].of;
        }
    }
    return n;
}
