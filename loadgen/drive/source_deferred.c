/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/source_deferred.h"

#include <math.h>
#include <stdlib.h>

#include "loadgen/drive/drive.h"
#include "loadgen/drive/sender.h"

#define WAIT_MAX 1e18 /* longer than any run */

static unsigned
capacity_of(const struct drive *d)
{
    /* Of a trace, pages that are held cannot be read ahead into. */
    unsigned pages = d->w->book != NULL ? d->w->book->count / 2 : FETCH_MAX;
    return pages < FETCH_MAX ? pages : FETCH_MAX;
}

bool
fetch_init(struct drive *d)
{
    struct fetch *f = &d->fetch;
    *f = (struct fetch){.blank_count = 0};
    if (!d->w->conf.defers) {
        return alarms_init(&f->alarms, 0);
    }
    unsigned n = capacity_of(d);
    f->entries = calloc(n, sizeof *f->entries);
    f->blank = calloc(n, sizeof *f->blank);
    f->queues = calloc(d->set->count, sizeof *f->queues);
    while (f->blank != NULL && f->blank_count < n) {
        f->blank[f->blank_count] = f->blank_count;
        f->blank_count++;
    }
    return alarms_init(&f->alarms, n) && f->entries != NULL && f->blank != NULL &&
           f->queues != NULL;
}

void
fetch_fini(struct drive *d)
{
    alarms_fini(&d->fetch.alarms);
    free(d->fetch.entries);
    free(d->fetch.blank);
    free(d->fetch.queues);
    d->fetch.entries = NULL;
    d->fetch.blank = NULL;
    d->fetch.queues = NULL;
}

nsec_t
fetch_pause(unsigned tries)
{
    nsec_t pause = FETCH_PAUSE;
    while (tries-- > 0 && pause < FETCH_PAUSE_MAX) {
        pause *= 2;
    }
    return pause < FETCH_PAUSE_MAX ? pause : FETCH_PAUSE_MAX;
}

static nsec_t
backend_time(struct drive *d)
{
    const struct dist *law = &d->w->conf.fetch;
    double u = law->kind == DIST_FIXED ? 0.5 : rng_unit(&d->rng);
    return (nsec_t)fmin(dist_value(law, u) * (double)NSEC_PER_SEC, WAIT_MAX);
}

/* Nobody needs the key any more. */
static void
release(const struct drive *d, uint64_t key)
{
    if (unlikely(d->w->book != NULL)) {
        book_release(d->w->book, key);
    }
}

static void
count(const struct drive *d, ctr_t *which, nsec_t now)
{
    ctr_add(which, drive_measures(d, now) ? 1 : 0);
}

static void
leave_out(const struct drive *d, enum missed_need need, nsec_t now)
{
    count(d, need == NEED_GET ? &d->tally->given_up : &d->tally->unfilled, now);
}

/* False when it is not to be waited for. */
static bool
add(struct drive *d, const struct lconn *c, const struct missed *what, nsec_t now)
{
    struct fetch *f = &d->fetch;
    bool is_tired = what->need == NEED_GET && what->tries == FETCH_TRIES;
    if (is_tired || f->blank_count == 0) {
        leave_out(d, what->need, now);
        return false;
    }
    uint32_t entry = f->blank[--f->blank_count];
    nsec_t wait = what->need == NEED_GET ? fetch_pause(what->tries) : backend_time(d);
    f->entries[entry] = (struct fetch_entry){
        .due = now + wait,
        .what = *what,
        .losses = f->queues[drive_index(d, c)].losses,
    };
    alarms_push(&f->alarms, (struct alarm_entry){now + wait, drive_index(d, c), entry});
    return true;
}

void
fetch_take(struct drive *d, struct lconn *c, nsec_t now)
{
    for (unsigned i = 0; i < c->followups.missed_count; i++) {
        const struct missed *what = &c->followups.missed[i];
        if (what->need != NEED_SET) {
            count(d, what->need == NEED_CAS ? &d->tally->won : &d->tally->waited, now);
        }
        if (!add(d, c, what, now)) {
            release(d, what->key);
        }
    }
    ctr_add(&d->tally->stale, drive_measures(d, now) ? c->followups.stale : 0);
    c->followups.missed_count = c->followups.stale = 0;
}

/* Nothing is to be done about it any more. */
static void
drop(struct drive *d, uint32_t entry)
{
    struct fetch *f = &d->fetch;
    release(d, f->entries[entry].what.key);
    f->blank[f->blank_count++] = entry;
}

/* It follows next on c, which has room. */
static void
follow(struct drive *d, struct lconn *c, uint32_t entry)
{
    static const enum codec_verb verbs[] = {
        [NEED_SET] = CODEC_SET,
        [NEED_CAS] = CODEC_CAS,
        [NEED_GET] = CODEC_GET,
    };
    const struct fetch_entry *e = &d->fetch.entries[entry];
    struct followup todo = {
        .intended = e->due,
        .key = e->what.key,
        .cas = e->what.cas,
        .verb = verbs[e->what.need],
        .is_fill = e->what.need != NEED_GET,
        .tries = (uint8_t)(e->what.tries + (e->what.need == NEED_GET ? 1 : 0)),
    };
    followups_defer(&c->followups, d->w, &todo);
    drop(d, entry);
}

/* ---- what waits for room --------------------------------------------------------------- */

static void
enqueue(struct drive *d, const struct lconn *c, uint32_t entry)
{
    struct fetch *f = &d->fetch;
    struct fetch_queue *q = &f->queues[drive_index(d, c)];
    if (q->count > 0) {
        f->entries[q->last].next = entry;
    } else {
        q->first = entry;
    }
    q->last = entry;
    q->count++;
    f->queued++;
}

static uint32_t
dequeue(struct fetch *f, struct fetch_queue *q)
{
    uint32_t entry = q->first;
    q->first = f->entries[entry].next;
    q->count--;
    f->queued--;
    return entry;
}

void
fetch_refill(struct drive *d, struct lconn *c)
{
    struct fetch_queue *q = &d->fetch.queues[drive_index(d, c)];
    while (q->count > 0 && followups_have_room(&c->followups)) {
        follow(d, c, dequeue(&d->fetch, q));
    }
}

void
fetch_lose(struct drive *d, const struct lconn *c, nsec_t now)
{
    if (d->fetch.queues == NULL) {
        return;
    }
    struct fetch_queue *q = &d->fetch.queues[drive_index(d, c)];
    q->losses++;
    while (q->count > 0) {
        uint32_t entry = dequeue(&d->fetch, q);
        leave_out(d, d->fetch.entries[entry].what.need, now);
        drop(d, entry);
    }
}

void
fetch_send_due(struct drive *d, nsec_t now)
{
    struct fetch *f = &d->fetch;
    while (alarms_next(&f->alarms) <= now && now < d->window.end) {
        struct alarm_entry alarm = alarms_pop(&f->alarms);
        struct lconn *c = &d->set->conns[alarm.who];
        const struct fetch_entry *e = &f->entries[alarm.value];
        if (c->state != LCONN_UP || e->losses != f->queues[alarm.who].losses) {
            leave_out(d, e->what.need, now); /* lost, and with it who asked */
            drop(d, alarm.value);
        } else if (!followups_have_room(&c->followups)) {
            enqueue(d, c, alarm.value);
        } else {
            follow(d, c, alarm.value);
            flow_fill(d, c, now);
        }
    }
}
