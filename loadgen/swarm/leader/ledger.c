/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/ledger.h"

#include "base/alloc.h"
#include "loadgen/measure/result.h"
#include "loadgen/swarm/delta.h"
#include "loadgen/swarm/message.h"

/* More than the delta of any interval takes: all buckets of all histograms. */
#define REPORT_BYTES ((size_t)2 << 20)

/* One delta that waits. */
struct report {
    struct report *next;
    uint64_t interval;
    unsigned class_index;
    size_t len;
    uint8_t fields[];
};

struct part {
    struct ledger_part conf;
    struct counters *sums;      /* one a class; added up */
    struct counters *headlines; /* at the cut; NULL: not cut */
    struct report *first, **last;
    size_t waiting;    /* bytes of the reports */
    uint64_t reported; /* whole intervals */
    /* What comes next: the first class of any later interval, or the next of this one. */
    unsigned next_class;
    uint64_t under_way;
    bool is_lost, is_done;
};

struct ledger {
    struct part *parts;
    unsigned count, classes;
    struct ledger_run run;
    uint64_t added;                   /* intervals added up */
    uint64_t cut;                     /* UINT64_MAX: none was lost */
    bool is_cut;                      /* headlines are there */
    bool is_open;                     /* between start and finish */
    struct series **series, **behind; /* one a class, then that of all; after the cut */
    const struct counters **looked;   /* room for a look */
};

/* ---- beginning and end -------------------------------------------------------------- */

struct ledger *
ledger_create(unsigned parts, unsigned classes)
{
    struct ledger *l = alloc_zeroed(1, sizeof *l);
    l->count = parts;
    l->classes = classes;
    l->cut = UINT64_MAX;
    l->parts = alloc_zeroed(parts, sizeof *l->parts);
    l->series = alloc_zeroed(classes + 1, sizeof(struct series *));
    l->behind = alloc_zeroed(classes + 1, sizeof(struct series *));
    l->looked = alloc_zeroed((size_t)parts * classes, sizeof *l->looked);
    for (unsigned i = 0; i < parts; i++) {
        l->parts[i].last = &l->parts[i].first;
        l->parts[i].sums = delta_counters_create(classes);
    }
    return l;
}

static void
forget_reports(struct part *p)
{
    while (p->first != NULL) {
        struct report *r = p->first;
        p->first = r->next;
        free(r);
    }
    p->last = &p->first;
    p->waiting = 0;
}

static void
forget(struct ledger *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        forget_reports(&l->parts[i]);
        delta_counters_destroy(&l->parts[i].headlines, l->classes);
    }
    for (unsigned c = 0; c <= l->classes; c++) {
        series_destroy(&l->series[c]);
        series_destroy(&l->behind[c]);
    }
}

void
ledger_destroy(struct ledger **ledger)
{
    struct ledger *l = *ledger;
    if (l == NULL) {
        return;
    }
    forget(l);
    for (unsigned i = 0; i < l->count; i++) {
        delta_counters_destroy(&l->parts[i].sums, l->classes);
    }
    free(l->parts);
    free(l->series);
    free(l->behind);
    free(l->looked);
    free(l);
    *ledger = NULL;
}

static struct series *
make_series(const struct ledger_run *run)
{
    struct series *s = series_create(run->row_length, run->keeps_latencies);
    series_start(s, run->start);
    return s;
}

void
ledger_start(struct ledger *l, const struct ledger_run *run)
{
    forget(l);
    l->run = *run;
    l->added = 0;
    l->cut = UINT64_MAX;
    l->is_cut = false;
    l->is_open = true;
    for (unsigned i = 0; i < l->count; i++) {
        struct part *p = &l->parts[i];
        p->conf = run->parts[i];
        must(p->conf.first_class <= p->conf.end_class && p->conf.end_class <= l->classes);
        p->reported = p->under_way = 0;
        p->next_class = p->conf.first_class;
        p->is_done = false;
        p->is_lost = p->conf.first_class == p->conf.end_class;
        for (unsigned c = 0; c < l->classes; c++) {
            counters_reset(&p->sums[c]);
        }
    }
    for (unsigned c = 0; c <= l->classes; c++) {
        l->series[c] = make_series(run);
    }
}

/* ---- adding up ---------------------------------------------------------------------- */

/* The sums of a class, or (with their number) of all. */
static unsigned
look_at(struct ledger *l, unsigned class_index)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->count; i++) {
        for (unsigned c = 0; c < l->classes; c++) {
            if (c == class_index || class_index == l->classes) {
                l->looked[n++] = &l->parts[i].sums[c];
            }
        }
    }
    return n;
}

static void
look(struct ledger *l, nsec_t now)
{
    for (unsigned c = 0; c <= l->classes; c++) {
        series_look(l->is_cut ? l->behind[c] : l->series[c], l->looked, look_at(l, c),
                    now);
    }
}

/* The headline ends here; what follows is another series. */
static void
cut(struct ledger *l, nsec_t now)
{
    l->is_cut = true;
    for (unsigned i = 0; i < l->count; i++) {
        struct part *p = &l->parts[i];
        p->headlines = delta_counters_create(l->classes);
        for (unsigned c = 0; c < l->classes; c++) {
            counters_merge(&p->headlines[c], &p->sums[c]);
            result_settle_waits(&p->headlines[c]);
        }
    }
    for (unsigned c = 0; c <= l->classes; c++) {
        series_end(l->series[c]);
        l->behind[c] = make_series(&l->run);
        series_skip(l->behind[c], l->looked, look_at(l, c), now);
    }
}

static void
add_up(struct part *p, uint64_t interval)
{
    while (p->first != NULL && p->first->interval <= interval) {
        struct report *r = p->first;
        struct frame f = {.fields = r->fields, .fields_len = r->len};
        bool is_good = delta_add(&p->sums[r->class_index], &f);
        must(is_good); /* it was looked at when it came */
        p->first = r->next;
        p->last = p->first == NULL ? &p->first : p->last;
        p->waiting -= r->len;
        free(r);
    }
}

/* Up to this interval; the time of its end is `now`. */
static void
advance(struct ledger *l, uint64_t interval, nsec_t now)
{
    for (unsigned i = 0; i < l->count; i++) {
        add_up(&l->parts[i], interval);
    }
    l->added = interval;
    look(l, now);
    if (!l->is_cut && l->cut > 0 && l->added == l->cut) {
        cut(l, now);
    }
}

static bool
is_crowded(const struct ledger *l)
{
    bool is = false;
    for (unsigned i = 0; i < l->count; i++) {
        is = is || l->parts[i].waiting > LEDGER_WAITING_BYTES;
    }
    return is;
}

/* The last interval is left to ledger_finish, which knows when it ended. */
static void
advance_all(struct ledger *l)
{
    uint64_t ready = UINT64_MAX, ahead = 0;
    for (unsigned i = 0; i < l->count; i++) {
        const struct part *p = &l->parts[i];
        bool is_awaited = !p->is_lost && !p->is_done;
        ready = is_awaited && p->reported < ready ? p->reported : ready;
        ahead = p->reported > ahead ? p->reported : ahead;
    }
    uint64_t before_last = interval_last(l->run.end - l->run.start, l->run.length) - 1;
    ready = ready == UINT64_MAX ? ahead : ready;
    ready = ahead > ready + LEDGER_WAITING ? ahead - LEDGER_WAITING : ready;
    ready = ready < before_last ? ready : before_last;
    while (l->added < ready || (l->added < before_last && is_crowded(l))) {
        advance(l, l->added + 1, l->run.start + (l->added + 1) * l->run.length);
    }
}

static bool
is_next(const struct ledger *l, const struct part *p, unsigned class_index,
        uint64_t interval)
{
    bool is_begun = p->next_class != p->conf.first_class;
    return class_index == p->next_class && class_index < p->conf.end_class &&
           (is_begun ? interval == p->under_way : interval > p->reported) &&
           interval <= interval_last(l->run.end - l->run.start, l->run.length);
}

bool
ledger_add(struct ledger *l, unsigned part, unsigned class_index, uint64_t interval,
           const struct frame *delta)
{
    must(part < l->count);
    struct part *p = &l->parts[part];
    if (!l->is_open || p->is_lost || p->is_done ||
        !is_next(l, p, class_index, interval) || delta->fields_len > REPORT_BYTES ||
        !delta_is_good(&p->sums[class_index], delta)) {
        return false;
    }
    struct report *r = alloc_bytes(sizeof *r + delta->fields_len);
    *r = (struct report){NULL, interval, class_index, delta->fields_len};
    memcpy(r->fields, delta->fields, delta->fields_len);
    *p->last = r;
    p->last = &r->next;
    p->waiting += r->len;
    p->under_way = interval;
    p->next_class = class_index + 1;
    if (p->next_class == p->conf.end_class) {
        p->next_class = p->conf.first_class;
        p->reported = interval;
        advance_all(l);
    }
    return true;
}

void
ledger_done(struct ledger *l, unsigned part)
{
    must(part < l->count);
    if (l->is_open) {
        l->parts[part].is_done = true;
        advance_all(l);
    }
}

void
ledger_lose(struct ledger *l, unsigned part)
{
    must(part < l->count);
    struct part *p = &l->parts[part];
    if (!l->is_open || p->is_lost || p->is_done) {
        return;
    }
    p->is_lost = true;
    if (!l->is_cut && p->reported < l->cut) {
        l->cut = p->reported > l->added ? p->reported : l->added;
    }
    if (!l->is_cut && l->cut > 0 && l->added == l->cut) {
        cut(l, l->run.start + l->added * l->run.length);
    }
    advance_all(l);
}

bool
ledger_is_void(const struct ledger *l)
{
    return l->cut == 0;
}

uint64_t
ledger_added(const struct ledger *l)
{
    return l->added;
}

const struct counters *const *
ledger_look(struct ledger *l, unsigned *n)
{
    *n = look_at(l, l->classes);
    return l->looked;
}

/* An agent that was lost before an interval ended is missing in it. */
static void
mark_rows(const struct ledger *l, struct series *s)
{
    for (unsigned r = 0; r < s->rows_len; r++) {
        struct series_row *row = &s->rows[r];
        double end = (row->start_s + row->length_s) * (double)NSEC_PER_SEC;
        for (unsigned i = 0; i < l->count; i++) {
            const struct part *p = &l->parts[i];
            bool took_part = p->conf.first_class < p->conf.end_class;
            double seen = (double)(p->reported * l->run.length);
            row->lost +=
                took_part && p->is_lost && seen + (double)NSEC_PER_MSEC < end ? 1 : 0;
        }
    }
}

void
ledger_finish(struct ledger *l, nsec_t end)
{
    must(l->is_open);
    advance_all(l);
    l->is_open = false;
    uint64_t last = interval_last(l->run.end - l->run.start, l->run.length);
    if (!l->is_cut && l->cut > l->added && l->cut < last) {
        /* Those that are done were ordered to stop before it. */
        advance(l, l->cut, l->run.start + l->cut * l->run.length);
    }
    nsec_t before = l->run.start + l->added * l->run.length;
    advance(l, last, end > before ? end : before);
    for (unsigned c = 0; c <= l->classes; c++) {
        if (!l->is_cut) {
            series_end(l->series[c]);
        } else {
            series_end(l->behind[c]);
            series_append_rows(l->series[c], l->behind[c]);
        }
        mark_rows(l, l->series[c]);
    }
}

/* ---- what it came to ---------------------------------------------------------------- */

struct counters *
ledger_sum(const struct ledger *l, unsigned part, unsigned class_index)
{
    must(part < l->count && class_index < l->classes);
    return &l->parts[part].sums[class_index];
}

const struct counters *
ledger_headline(const struct ledger *l, unsigned part, unsigned class_index)
{
    must(part < l->count && class_index < l->classes);
    const struct part *p = &l->parts[part];
    return l->is_cut ? &p->headlines[class_index] : &p->sums[class_index];
}

uint64_t
ledger_cut(const struct ledger *l)
{
    return l->is_cut ? l->cut : 0;
}

uint64_t
ledger_reported(const struct ledger *l, unsigned part)
{
    must(part < l->count);
    return l->parts[part].reported;
}

struct series *
ledger_take_series(struct ledger *l, unsigned class_index)
{
    must(class_index <= l->classes);
    struct series *s = l->series[class_index];
    l->series[class_index] = NULL;
    return s;
}
