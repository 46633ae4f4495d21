/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/run/run_state.h"

#include "base/alloc.h"

/* A look takes some 100 us and pulls cache lines from the sending threads. */
#define LENGTH_MIN (10 * NSEC_PER_MSEC)
/* So many looks a run leave some pieces to spare when a run is cut short. */
#define LOOKS (SERIES_PIECES / 2)

void
sampler_init(struct sampler *o, unsigned classes, unsigned threads)
{
    *o = (struct sampler){.classes = classes};
    o->counters = alloc_zeroed(threads, sizeof *o->counters);
    o->first = alloc_zeroed(classes + 1, sizeof *o->first);
    o->series = alloc_zeroed(classes + 1, sizeof(struct series *));
}

void
sampler_fini(struct sampler *o)
{
    for (unsigned i = 0; o->series != NULL && i <= o->classes; i++) {
        series_destroy(&o->series[i]);
    }
    free(o->series);
    free(o->first);
    free(o->counters);
    *o = (struct sampler){.series = NULL};
}

void
sampler_add(struct sampler *o, unsigned class_index, const struct counters *counters)
{
    must(class_index < o->classes);
    o->counters[o->counters_len++] = counters;
    for (unsigned i = class_index + 1; i <= o->classes; i++) {
        o->first[i] = o->counters_len;
    }
}

void
sampler_prepare(struct sampler *o, nsec_t row_length, bool keeps)
{
    o->row_length = row_length;
    for (unsigned i = 0; i <= o->classes; i++) {
        series_destroy(&o->series[i]);
        o->series[i] = series_create(row_length, keeps);
    }
}

void
sampler_start(struct sampler *o, const struct drive_window *window, nsec_t longest)
{
    nsec_t length = (window->end - window->start) / LOOKS;
    o->length = length < LENGTH_MIN ? LENGTH_MIN : length > longest ? longest : length;
    if (o->row_length > 0 && o->row_length < o->length) {
        o->length = o->row_length < LENGTH_MIN ? LENGTH_MIN : o->row_length;
    }
    o->window = *window;
    o->next = window->start + o->length;
    for (unsigned i = 0; i <= o->classes; i++) {
        series_start(o->series[i], window->start);
    }
}

/* A class, or all. */
static void
look(struct sampler *o, unsigned index, nsec_t now)
{
    unsigned first = index < o->classes ? o->first[index] : 0;
    unsigned end = index < o->classes ? o->first[index + 1] : o->counters_len;
    series_look(o->series[index], &o->counters[first], end - first, now);
}

void
sampler_look(struct sampler *o, nsec_t now)
{
    if (now >= o->next && now < o->window.end) {
        for (unsigned i = 0; i <= o->classes; i++) {
            look(o, i, now);
        }
        while (o->next <= now) {
            o->next += o->length;
        }
    }
}

void
sampler_end(struct sampler *o, unsigned index, nsec_t end)
{
    nsec_t looked = o->series[index]->now.to; /* late, it may have passed the end */
    look(o, index, end > looked ? end : looked);
    series_end(o->series[index]);
}

struct series *
sampler_take(struct sampler *o, unsigned index)
{
    must(index <= o->classes);
    struct series *s = o->series[index];
    o->series[index] = NULL;
    return s;
}

/* ---- stopping ---------------------------------------------------------------------- */

/* Each class has to be: they have objectives of their own. */
static bool
is_sure(const struct options *o, const struct sampler *w)
{
    bool is_sure = until_is_given(&o->until);
    for (unsigned i = 0; is_sure && i < o->classes_len; i++) {
        is_sure =
            o->classes[i].antagonist != NULL || until_is_met(&o->until, w->series[i]);
    }
    return is_sure;
}

bool
stopping_is_reached(struct stopping *s, const struct options *o, const struct sampler *w)
{
    nsec_t next = w->next;
    if (next == s->asked) {
        return false;
    }
    bool was_sure = s->was_sure;
    s->asked = next;
    s->was_sure = is_sure(o, w);
    s->is_reached = was_sure && s->was_sure;
    return s->is_reached;
}

bool
stopping_is_met(const struct result *r)
{
    bool is_sure = true;
    for (unsigned i = 0; i < r->classes_len; i++) {
        const struct result *c = &r->classes[i];
        is_sure = is_sure && (c->is_antagonist || until_is_met(r->until, c->series));
    }
    return is_sure;
}
