/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an application does meanwhile about keys that it missed: those that it fetches from a
 * backend, which takes a time that is drawn, and stores then; and those that another client
 * is to store (leases), which it asks for again after a pause. Either waits for its time
 * here and holds up nothing. No allocation while it runs.
 */
#include "loadgen/drive/source.h"

#include "base/alloc.h"
struct deferred_key {
    nsec_t due;
    struct missed what;
    unsigned losses; /* its connection's, when it was missed */
    uint32_t next;   /* due after it on its connection; of one without use, another */
};

/* Of a connection: what was due when it had no room, in order. */
struct deferred_queue {
    uint32_t first, last;
    unsigned count;
    unsigned losses; /* of the connection: requests from before one are gone */
};

#define NONE UINT32_MAX

struct deferred {
    struct source base;
    struct alarms alarms;          /* by connection; value: entry */
    struct deferred_queue *queues; /* one each connection of the set */
    struct deferred_key *entries;
    uint32_t blank; /* one without use; NONE */
};

/* ---- keys that wait -------------------------------------------------------------------- */

/* The key is not needed any more. */
static void
release(const struct drive *d, uint64_t key)
{
    if (unlikely(d->w->trace_buffer != NULL)) {
        trace_buffer_release(d->w->trace_buffer, key);
    }
}

static void
leave_out(const struct drive *d, enum missed_need need, nsec_t now)
{
    drive_count(d, need == NEED_GET ? &d->counters->given_up : &d->counters->unfilled,
                now);
}

/* False when it is not to be waited for. */
static bool
add(struct deferred *f, const struct lconn *c, const struct missed *what, nsec_t now)
{
    struct drive *d = f->base.d;
    bool is_tired = what->need == NEED_GET && what->tries == SOURCE_TRIES;
    if (is_tired || f->blank == NONE) {
        leave_out(d, what->need, now);
        return false;
    }
    uint32_t entry = f->blank;
    unsigned conn = c->index;
    nsec_t due = now + (what->need == NEED_GET ? source_pause(what->tries)
                                               : drive_draw_time(d, &d->w->conf.fetch));
    f->blank = f->entries[entry].next;
    f->entries[entry] = (struct deferred_key){
        .due = due, .what = *what, .losses = f->queues[conn].losses};
    alarms_push(&f->alarms, (struct alarm_entry){due, conn, entry});
    f->base.sender->deferred++;
    return true;
}

/* Nothing is to be done about it any more. */
static void
drop(struct deferred *f, uint32_t entry)
{
    release(f->base.d, f->entries[entry].what.key);
    f->entries[entry].next = f->blank;
    f->blank = entry;
    f->base.sender->deferred--;
}

/* It follows next on c, which has room. */
static void
follow(struct deferred *f, struct lconn *c, uint32_t entry)
{
    static const enum codec_verb verbs[] = {
        [NEED_SET] = CODEC_SET,
        [NEED_CAS] = CODEC_CAS,
        [NEED_GET] = CODEC_GET,
    };
    const struct deferred_key *e = &f->entries[entry];
    struct followup todo = {
        .intended = e->due,
        .key = e->what.key,
        .cas = e->what.cas,
        .verb = verbs[e->what.need],
        .is_fill = e->what.need != NEED_GET,
        .tries = (uint8_t)(e->what.tries + (e->what.need == NEED_GET ? 1 : 0)),
    };
    followups_add(&c->followups, f->base.d->w, todo);
    drop(f, entry);
}

static void
enqueue(struct deferred *f, struct deferred_queue *q, uint32_t entry)
{
    if (q->count > 0) {
        f->entries[q->last].next = entry;
    } else {
        q->first = entry;
    }
    q->last = entry;
    q->count++;
}

static uint32_t
dequeue(struct deferred *f, struct deferred_queue *q)
{
    uint32_t entry = q->first;
    q->first = f->entries[entry].next;
    q->count--;
    return entry;
}

/* ---- what the loop calls --------------------------------------------------------------- */

/* Takes what the answer has left to be done. */
static void
answered(struct source *s, struct lconn *c, const struct request_op *op, nsec_t now)
{
    (void)op; /* c has it */
    struct deferred *f = (struct deferred *)s;
    struct counters *counters = s->d->counters;
    for (unsigned i = 0; i < c->followups.missed_count; i++) {
        const struct missed *what = &c->followups.missed[i];
        if (what->need != NEED_SET) {
            drive_count(s->d, what->need == NEED_CAS ? &counters->won : &counters->waited,
                        now);
        }
        if (!add(f, c, what, now)) {
            release(s->d, what->key);
        }
    }
    ctr_add(&counters->stale, drive_measures(s->d, now) ? c->followups.stale : 0);
    c->followups.missed_count = c->followups.stale = 0;
}

static nsec_t
next_due(struct source *s)
{
    return alarms_next(&((struct deferred *)s)->alarms);
}

/* On the connection where it was missed, or it waits for room on it. */
static void
send_due(struct source *s, nsec_t now)
{
    struct deferred *f = (struct deferred *)s;
    while (alarms_next(&f->alarms) <= now && now < s->d->window.end) {
        struct alarm_entry alarm = alarms_pop(&f->alarms);
        struct lconn *c = &s->d->set->conns[alarm.who];
        const struct deferred_key *e = &f->entries[alarm.value];
        struct deferred_queue *q = &f->queues[alarm.who];
        if (c->state != LCONN_UP || e->losses != q->losses) {
            leave_out(s->d, e->what.need, now); /* lost, and with it the request */
            drop(f, alarm.value);
        } else if (!followups_have_room(&c->followups)) {
            enqueue(f, q, alarm.value);
        } else {
            follow(f, c, alarm.value);
            if (sender_push_followups(s->sender, c, now)) {
                sender_make_dirty(s->sender, c);
            }
        }
    }
}

/* What waited for room goes while there is some. */
static void
push(struct source *s, struct lconn *c, nsec_t now)
{
    struct deferred *f = (struct deferred *)s;
    struct deferred_queue *q = &f->queues[c->index];
    while (q->count > 0 && followups_have_room(&c->followups)) {
        follow(f, c, dequeue(f, q));
        (void)sender_push_followups(s->sender, c, now);
    }
}

static void
lost(struct source *s, const struct lconn *c, nsec_t now)
{
    struct deferred *f = (struct deferred *)s;
    struct deferred_queue *q = &f->queues[c->index];
    q->losses++;
    while (q->count > 0) {
        uint32_t entry = dequeue(f, q);
        leave_out(s->d, f->entries[entry].what.need, now);
        drop(f, entry);
    }
}

static void
destroy(struct source *s)
{
    struct deferred *f = (struct deferred *)s;
    alarms_fini(&f->alarms);
    free(f->entries);
    free(f->queues);
    free(f);
}

static const struct source_ops ops = {
    .next_due = next_due,
    .send_due = send_due,
    .push = push,
    .answered = answered,
    .lost = lost,
    .destroy = destroy,
};

struct source *
source_deferred_create(struct drive *d, struct sender *sender)
{
    /* Of a trace, pages that are held cannot be read ahead into. */
    unsigned n =
        d->w->trace_buffer != NULL ? d->w->trace_buffer->count / 2 : SOURCE_DEFERRED_MAX;
    n = n < SOURCE_DEFERRED_MAX ? n : SOURCE_DEFERRED_MAX;
    struct deferred *f = alloc_zeroed(1, sizeof *f);
    f->base = (struct source){.ops = &ops, .d = d, .sender = sender};
    f->entries = alloc_zeroed(n, sizeof *f->entries);
    f->queues = alloc_zeroed(d->set->count, sizeof *f->queues);
    alarms_init(&f->alarms, n);
    for (unsigned i = 0; i < n; i++) {
        f->entries[i].next = i + 1 < n ? i + 1 : NONE;
    }
    return &f->base;
}
