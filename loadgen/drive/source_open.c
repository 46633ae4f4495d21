/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Open loop: requests by a schedule that does not care about replies, each to the connection
 * that has had room for longest. Partly open: sessions by the schedule; within one, the next
 * request when a reply came and its user has thought.
 */
#include "loadgen/drive/source.h"

#include "base/alloc.h"
#include "loadgen/drive/rooms.h"

#define SESSIONS_MAX 1048576 /* that wait for their next request, each thread */

struct open {
    struct source base;
    struct generator generator;
    struct arrivals arrival;
    nsec_t next;       /* intended start of the schedule's next request, or session */
    uint32_t next_tag; /* of it: 0 while its session's size is not drawn */
    bool could_send;   /* at the last wait it was only time that it waited for */
    nsec_t late_until; /* requests due by then should have been sent when they were */
    struct gaps intended;
    struct pacing pacing;
    unsigned outstanding_max;
    bool is_partly;
    struct alarms sessions; /* partly: next request; value: how many are left */
    struct rooms rooms;
};

/* ---- what is due -------------------------------------------------------------------- */

struct due {
    nsec_t when;
    bool is_session; /* the next request of one that has begun */
};

/* A session that begins must have a place to wait between its requests. */
static bool
has_place(const struct open *o)
{
    unsigned outstanding = o->base.sender->outstanding;
    return !o->is_partly || o->sessions.count + outstanding < o->sessions.capacity;
}

static struct due
find_due(const struct open *o)
{
    nsec_t session = alarms_next(&o->sessions);
    bool is_session = session <= o->next || (session != ALARMS_NEVER && !has_place(o));
    return (struct due){is_session ? session : o->next, is_session};
}

static bool
may_send(const struct open *o, struct due due)
{
    return o->base.sender->outstanding < o->outstanding_max &&
           (due.is_session || has_place(o));
}

/* The requests left in its session, it included. */
static uint32_t
tag_of(struct open *o, struct due due)
{
    struct drive *d = o->base.d;
    if (due.is_session) {
        return o->sessions.heap[0].value;
    }
    if (o->next_tag == 0) {
        o->next_tag = o->is_partly
                          ? (uint32_t)dist_size(&d->conf.traffic.session,
                                                rng_unit(&d->rng), 1, TRAFFIC_SESSION_MAX)
                          : TAG_ALONE;
    }
    return o->next_tag;
}

static void
count_offered(struct open *o, nsec_t intended)
{
    const struct drive *d = o->base.d;
    if (drive_measures(d, intended)) {
        ctr_add(&d->counters->offered, 1);
        gaps_note(&o->intended, d->counters->gaps_intended, intended);
    }
}

static void
take_due(struct open *o, struct due due)
{
    count_offered(o, due.when);
    if (due.is_session) {
        alarms_pop(&o->sessions);
    } else {
        o->next = arrivals_next(&o->arrival);
        o->next_tag = 0;
    }
}

/* After a request with this tag, however it ended. */
static void
go_on(struct open *o, uint32_t tag, nsec_t now)
{
    if (o->is_partly && tag > TAG_ALONE) {
        nsec_t when = now + drive_draw_time(o->base.d, &o->base.d->conf.traffic.think);
        alarms_push(&o->sessions, (struct alarm_entry){when, 0, tag - 1});
    }
}

/* A part of a request that is not its last is one more that is offered. */
static void
take_part(struct open *o, struct due due, bool is_last)
{
    if (is_last) {
        take_due(o, due);
    } else {
        count_offered(o, due.when);
    }
}

/* It is not sent. */
static void
pass_over(struct open *o, struct due due, ctr_t *why, nsec_t now)
{
    bool goes_on = due.is_session || has_place(o);
    uint32_t tag = tag_of(o, due);
    bool is_last = generator_skip(&o->generator);
    drive_pass_over(o->base.d, why, due.when);
    take_part(o, due, is_last);
    go_on(o, is_last && goes_on ? tag : TAG_ALONE, now);
}

static void
give(struct open *o, struct lconn *c, struct due due, nsec_t now)
{
    const struct drive *d = o->base.d;
    if (drive_measures(d, due.when)) {
        hist_record(d->counters->late, due.when <= o->late_until ? now - due.when : 0);
    }
    sender_count_push(o->base.sender, c);
    take_part(o, due, generator_push(&o->generator, c, due.when, tag_of(o, due)));
    sender_make_dirty(o->base.sender, c);
    rooms_offer(&o->rooms, c);
}

/* The one that is due goes, or is given up. False when it has to wait. */
static bool
send_one(struct open *o, struct due due, nsec_t now)
{
    struct counters *counters = o->base.d->counters;
    enum pacing_verdict verdict = pacing_judge(&o->pacing, due.when, now);
    if (verdict == PACING_DROP) {
        pass_over(o, due, &counters->skipped, now);
        return true;
    }
    if (verdict == PACING_WAIT || !may_send(o, due)) {
        return false;
    }
    unsigned server = generator_server(&o->generator);
    struct lconn *c = rooms_take(&o->rooms, server);
    if (c != NULL) {
        if (o->pacing.late == LATE_CAP) {
            pacer_take(&o->pacing.cap, now);
        }
        give(o, c, due, now);
        return true;
    }
    if (rooms_are_lost(&o->rooms, server)) {
        pass_over(o, due, &counters->unsent, now);
        return true;
    }
    return false;
}

static void
send_due(struct source *s, nsec_t now)
{
    struct open *o = (struct open *)s;
    struct due due;
    generator_at(&o->generator, now - s->d->window.begin);
    while (rooms_next_due(&o->rooms) <= now) {
        rooms_offer(&o->rooms, rooms_wake(&o->rooms));
    }
    if (o->could_send) {
        /* What was due before came too late by this thread's doing. */
        o->late_until = now;
    }
    do {
        due = find_due(o);
    } while (due.when <= now && due.when < s->d->window.end && send_one(o, due, now));
}

static nsec_t
next_due(struct source *s)
{
    struct open *o = (struct open *)s;
    nsec_t user = rooms_next_due(&o->rooms), when = ALARMS_NEVER;
    unsigned server = generator_server(&o->generator);
    o->could_send = false;
    if (o->rooms.rings[server].count > 0 || rooms_are_lost(&o->rooms, server)) {
        struct due due = find_due(o);
        bool is_capped = o->pacing.late == LATE_CAP;
        o->could_send = may_send(o, due) && !is_capped;
        when = may_send(o, due) ? due.when : ALARMS_NEVER;
        if (is_capped && when != ALARMS_NEVER &&
            when + PACING_LATE < pacer_next(&o->pacing.cap)) {
            when = pacer_next(&o->pacing.cap);
        }
    }
    return user < when ? user : when;
}

/* ---- what happens to connections ------------------------------------------------------ */

static void
offer(struct source *s, struct lconn *c)
{
    rooms_offer(&((struct open *)s)->rooms, c);
}

static void
push(struct source *s, struct lconn *c, nsec_t now)
{
    (void)now; /* by the schedule */
    offer(s, c);
}

static void
answered(struct source *s, struct lconn *c, const struct request_op *op, nsec_t now)
{
    struct open *o = (struct open *)s;
    go_on(o, op->tag, now);
    if (!o->is_partly && op->tag == TAG_ALONE && rooms_users_think(&o->rooms)) {
        rooms_rest(&o->rooms, c, now);
    }
}

static void
gone(struct source *s, const struct request_op *op, nsec_t now)
{
    go_on((struct open *)s, op->tag, now);
}

/* ---- beginning and end ---------------------------------------------------------------- */

static void
give_up(struct open *o, struct due due, nsec_t now)
{
    bool is_last;
    do {
        is_last = generator_skip(&o->generator);
        take_part(o, due, is_last);
        drive_give_up(o->base.d, &o->base.d->counters->unsent, due.when, now);
    } while (!is_last);
}

static void
end(struct source *s, nsec_t now)
{
    struct open *o = (struct open *)s;
    while (alarms_next(&o->sessions) < s->d->window.end) {
        give_up(o, (struct due){alarms_next(&o->sessions), true}, now);
    }
    while (o->next < s->d->window.end) {
        give_up(o, (struct due){o->next, false}, now);
    }
}

static void
begin(struct source *s)
{
    struct open *o = (struct open *)s;
    o->arrival.conf.start = s->d->window.begin;
    o->next = arrivals_next(&o->arrival);
}

static void
destroy(struct source *s)
{
    struct open *o = (struct open *)s;
    generator_fini(&o->generator);
    arrivals_fini(&o->arrival);
    alarms_fini(&o->sessions);
    rooms_fini(&o->rooms);
    free(o);
}

static const struct source_ops ops = {
    .begin = begin,
    .next_due = next_due,
    .send_due = send_due,
    .push = push,
    .room = offer,
    .answered = answered,
    .gone = gone,
    .end = end,
    .destroy = destroy,
};

/* The schedule is made before it is known when it starts: times count from 0. */
static struct arrivals_conf
arrivals_of(const struct drive *d)
{
    const struct drive_conf *conf = &d->conf;
    const struct traffic *t = &conf->traffic;
    double rate = t->rate / traffic_session_mean(t);
    struct arrivals_conf a = {
        .law = &t->arrivals,
        .rate = rate / conf->threads,
        .seed = conf->seed,
        .stream = drive_stream(conf, STREAM_ARRIVALS),
        .sources = 1,
        .every = 1,
        .schedule = schedule_varies(&t->schedule) ? &t->schedule : NULL,
    };
    if (t->scope == TRAFFIC_CONN && !arrivals_adds_up(a.law)) {
        a.sources = d->set->count;
    } else if (t->scope <= TRAFFIC_AGENT && !arrivals_adds_up(a.law)) {
        a.rate = rate;
        a.stream = stream_of(conf->agent, conf->first_thread, STREAM_ARRIVALS);
        a.every = conf->threads;
        a.first = conf->thread;
    }
    return a;
}

struct source *
source_open_create(struct drive *d, struct sender *sender)
{
    const struct traffic *t = &d->conf.traffic;
    unsigned threads = d->conf.threads;
    uint64_t share = t->max_outstanding / threads +
                     (d->conf.thread < t->max_outstanding % threads ? 1 : 0);
    struct arrivals_conf arrivals = arrivals_of(d);
    struct open *o = alloc_zeroed(1, sizeof *o);
    o->base = (struct source){
        .ops = &ops,
        .d = d,
        .sender = sender,
        .is_deaf = t->mode != TRAFFIC_PARTLY && !traffic_thinks(t),
    };
    o->next = ALARMS_NEVER;
    o->intended.each = sender->issued.each;
    o->pacing.late = t->late;
    pacer_init(&o->pacing.cap, t->late == LATE_CAP ? t->cap * t->rate / threads : 0);
    o->outstanding_max = t->max_outstanding == 0 ? UINT32_MAX : (unsigned)share;
    o->is_partly = t->mode == TRAFFIC_PARTLY;
    drive_generator_init(d, &o->generator);
    rooms_init(&o->rooms, sender);
    arrivals_init(&o->arrival, &arrivals);
    alarms_init(&o->sessions, o->is_partly ? SESSIONS_MAX : 0);
    return &o->base;
}
