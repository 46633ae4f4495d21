/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/reconnect.h"

enum { IS_DUE, HAS_PLACE }; /* what an alarm is for */

void
reconnect_init(struct reconnect *r, struct drive *d)
{
    *r = (struct reconnect){.d = d};
    pacer_init(&r->pacer, d->conf.traffic.connect_rate / d->conf.threads);
    alarms_init(&r->alarms, d->set->count);
}

void
reconnect_fini(struct reconnect *r)
{
    alarms_fini(&r->alarms);
}

void
reconnect_begin(struct reconnect *r, const struct lconn *c)
{
    struct drive *d = r->d;
    const struct traffic *t = &d->conf.traffic;
    ctr_add(&d->counters->opened, 1);
    bool is_for_ever = t->lifetime.kind == DIST_FIXED && t->lifetime.a <= 0;
    drive_conn_of(d, c)->left =
        is_for_ever ? DRIVE_FOREVER
                    : dist_size(&t->lifetime, rng_unit(&d->rng), 1, TRAFFIC_LIFETIME_MAX);
}

static bool
has_heard(const struct drive *d, const struct lconn *c)
{
    return c->read_at != 0 && c->read_at >= d->window.begin;
}

/* A new one in its place has heard nothing yet. */
static void
note_served(struct drive *d, const struct lconn *c)
{
    struct drive_conn *dc = drive_conn_of(d, c);
    dc->was_served = dc->was_served || has_heard(d, c);
}

/* Opens c when it may be, not before `when`. */
static void
open_at(struct reconnect *r, struct lconn *c, nsec_t when, unsigned what)
{
    struct drive_conn *dc = drive_conn_of(r->d, c);
    must(!dc->has_alarm && c->state == LCONN_DOWN);
    dc->has_alarm = true;
    alarms_push(&r->alarms, (struct alarm_entry){when, c->index, what});
}

/* After a loss, or an attempt that failed: which waits in any case. */
static void
open_again(struct reconnect *r, struct lconn *c, nsec_t when)
{
    if (r->d->conf.traffic.reconnect != RECONNECT_NONE) {
        open_at(r, c, when, IS_DUE);
    }
}

void
reconnect_lose(struct reconnect *r, struct lconn *c, enum counters_error why, nsec_t now)
{
    struct drive *d = r->d;
    bool is_now = d->conf.traffic.reconnect == RECONNECT_NOW && c->state == LCONN_UP;
    drive_error(d, why, 1, now);
    note_served(d, c);
    drive_conn_of(d, c)->was_in_vain |= why == COUNTERS_TIMEOUT;
    lset_lose(d->set, c, now);
    open_again(r, c, is_now ? now + 1 : c->retry_at); /* not in this round */
}

void
reconnect_replace(struct reconnect *r, struct lconn *c, nsec_t now)
{
    ctr_add(&r->d->counters->closed, 1);
    note_served(r->d, c);
    lset_down(r->d->set, c);
    open_at(r, c, now + 1, IS_DUE);
}

/* A place is taken when the connection may be opened, and not before: else those that wait after failures
 * would keep the places of others. */
struct lconn *
reconnect_take(struct reconnect *r, nsec_t now)
{
    struct alarm_entry alarm = alarms_pop(&r->alarms);
    nsec_t when = alarm.value == IS_DUE ? pacer_reserve(&r->pacer, now) : now;
    if (when > now) {
        alarms_push(&r->alarms, (struct alarm_entry){when, alarm.who, HAS_PLACE});
        return NULL;
    }
    struct lconn *c = &r->d->set->conns[alarm.who];
    drive_conn_of(r->d, c)->has_alarm = false;
    return c;
}

bool
reconnect_go_on(struct reconnect *r, struct lconn *c, nsec_t now)
{
    switch (lset_reconnect(r->d->set, c, now)) {
    case LINK_AGAIN:
        open_at(r, c, c->retry_at, HAS_PLACE);
        return true;
    case LINK_LOST:
        drive_error(r->d, COUNTERS_CONNECT, 1, now);
        open_again(r, c, c->retry_at);
        return false;
    case LINK_OK:
        break;
    }
    if (c->state == LCONN_UP) {
        reconnect_begin(r, c);
    }
    return true;
}

bool
reconnect_is_overdue(const struct reconnect *r, const struct lconn *c, nsec_t now,
                     enum counters_error *why)
{
    const struct request_op *oldest = lconn_oldest(c);
    nsec_t since = oldest != NULL && oldest->issued != 0 ? oldest->issued : now;
    since = c->blocked_at != 0 && c->blocked_at < since ? c->blocked_at : since;
    bool is_late = since + r->d->conf.timeout < now;
    *why = is_late ? COUNTERS_TIMEOUT : COUNTERS_CONNECT;
    return is_late || (c->state == LCONN_CONNECTING && c->retry_at <= now);
}

void
reconnect_count_unserved(const struct reconnect *r)
{
    const struct drive *d = r->d;
    for (unsigned i = 0; i < d->set->count; i++) {
        const struct lconn *c = &d->set->conns[i];
        const struct request_op *oldest = lconn_oldest(c);
        bool is_asked = oldest != NULL && oldest->issued != 0;
        bool is_unserved = !d->conns[i].was_served && !has_heard(d, c) &&
                           (is_asked || d->conns[i].was_in_vain);
        ctr_add(&d->counters->unserved, is_unserved ? 1 : 0);
    }
}
