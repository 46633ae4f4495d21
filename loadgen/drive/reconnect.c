/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/reconnect.h"

#include "loadgen/drive/sender.h"

void
life_begin(struct drive *d, struct lconn *c)
{
    const struct traffic *t = &d->conf.traffic;
    ctr_add(&d->tally->opened, 1);
    drive_life(d, c)->left =
        traffic_churns(t)
            ? dist_size(&t->lifetime, rng_unit(&d->rng), 1, TRAFFIC_LIFETIME_MAX)
            : LIFE_FOREVER;
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
    struct life *l = drive_life(d, c);
    l->was_served = l->was_served || has_heard(d, c);
}

void
life_count_unserved(struct drive *d)
{
    for (unsigned i = 0; i < d->set->count; i++) {
        const struct lconn *c = &d->set->conns[i];
        const struct request_op *oldest = lconn_oldest(c);
        bool is_asked = oldest != NULL && oldest->issued != 0;
        bool is_unserved = !d->lives[i].was_served && !has_heard(d, c) &&
                           (is_asked || d->lives[i].was_in_vain);
        ctr_add(&d->tally->unserved, is_unserved ? 1 : 0);
    }
}

/* Opens c when it may be, not before `when`. */
static void
open_at(struct drive *d, struct lconn *c, nsec_t when)
{
    struct life *l = drive_life(d, c);
    must(!l->has_alarm && c->state == LCONN_DOWN);
    l->has_alarm = true;
    when = pacer_reserve(&d->connects, when);
    alarms_push(&d->retries, (struct alarm_entry){when, drive_index(d, c), 0});
}

/* After a loss, or an attempt that failed: which waits in any case. */
static void
open_again(struct drive *d, struct lconn *c, nsec_t when)
{
    if (unlikely(d->replay.book != NULL)) {
        replay_lose(d, c);
    }
    if (d->conf.traffic.reconnect != RECONNECT_NONE) {
        open_at(d, c, when);
    }
}

void
life_lose(struct drive *d, struct lconn *c, enum tally_error why, nsec_t now)
{
    bool is_now = d->conf.traffic.reconnect == RECONNECT_NOW && c->state == LCONN_UP;
    ctr_add(&d->tally->errors[why], 1);
    flow_forget(d, c, &d->tally->lost, now);
    fetch_lose(d, c, now);
    note_served(d, c);
    drive_life(d, c)->was_in_vain |= why == TALLY_TIMEOUT;
    lset_lose(d->set, c, now);
    open_again(d, c, is_now ? now + 1 : c->retry_at); /* not in this round */
}

void
life_connected(struct drive *d, struct lconn *c, nsec_t now)
{
    if (!lset_reconnect(d->set, c, now)) {
        ctr_add(&d->tally->errors[TALLY_CONNECT], 1);
        open_again(d, c, c->retry_at);
    } else if (c->state == LCONN_UP) {
        life_begin(d, c);
        if (unlikely(d->replay.book != NULL)) {
            replay_find(d, c);
        }
    }
}

void
life_replace(struct drive *d, struct lconn *c, nsec_t now)
{
    ctr_add(&d->tally->closed, 1);
    flow_forget(d, c, &d->tally->lost, now);
    note_served(d, c);
    lset_down(d->set, c);
    open_at(d, c, now + 1);
}

/* A UNIX socket is up at once and no event says so: it gets its requests here. */
void
life_open_due(struct drive *d, nsec_t now)
{
    while (alarms_next(&d->retries) <= now && now < d->window.end) {
        struct lconn *c = &d->set->conns[alarms_pop(&d->retries).who];
        drive_life(d, c)->has_alarm = false;
        life_connected(d, c, now);
        flow_fill(d, c, now);
    }
}

/* Datagrams get lost one by one: the others on the way are waited for. */
static void
give_up_lost(struct drive *d, struct lconn *c, nsec_t now)
{
    struct request_op op;
    uint64_t key;
    bool has_lost = false;
    nsec_t limit = now > d->conf.timeout ? now - d->conf.timeout : 0;
    while (lconn_give_up(c, limit, &op, &key)) {
        has_lost = true;
        ctr_add(&d->tally->errors[TALLY_TIMEOUT], 1);
        if (drive_measures(d, op.intended)) {
            tally_censored(d->tally, &d->tally->lost, now - op.intended);
        }
        flow_answered(d, c, &op, now); /* whoever asked goes on */
    }
    if (has_lost) {
        drive_life(d, c)->was_in_vain = true;
        flow_fill(d, c, now);
    }
}

void
life_count_strays(struct drive *d)
{
    ctr_add(&d->tally->errors[TALLY_LATE], d->set->late);
    ctr_add(&d->tally->errors[TALLY_DUPLICATE], d->set->duplicate);
    d->set->late = d->set->duplicate = 0;
}

void
life_time_out(struct drive *d, nsec_t now)
{
    life_count_strays(d);
    for (unsigned i = 0; i < d->set->count; i++) {
        struct lconn *c = &d->set->conns[i];
        const struct request_op *oldest = lconn_oldest(c);
        nsec_t since = oldest != NULL && oldest->issued != 0 ? oldest->issued : now;
        since = c->blocked_at != 0 && c->blocked_at < since ? c->blocked_at : since;
        if (c->is_framed && c->state == LCONN_UP) {
            give_up_lost(d, c, now);
        } else if (since + d->conf.timeout < now) {
            life_lose(d, c, TALLY_TIMEOUT, now);
        } else if (c->state == LCONN_CONNECTING && c->retry_at <= now) {
            life_lose(d, c, TALLY_CONNECT, now);
        }
    }
}
