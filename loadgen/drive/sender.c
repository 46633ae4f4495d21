/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/sender.h"

#include "loadgen/drive/reconnect.h"

/* Tags of requests: 0 is one that follows from an answer, and nothing follows from it; else
 * how many are left in its session, itself included. */
#define TAG_NONE 0
#define TAG_ALONE 1

static bool
is_partly(const struct drive *d)
{
    return d->conf.traffic.mode == TRAFFIC_PARTLY;
}

/* ---- connections with room --------------------------------------------------------- */

bool
flow_has_room(const struct drive *d, const struct lconn *c)
{
    if (!lconn_has_room(c, d->conf.depth) || c->followups.count > 0) {
        return false;
    }
    const struct life *l = drive_life(d, c);
    return l->left > 0 && c->count + l->resting < d->conf.depth;
}

void
flow_offer(struct drive *d, struct lconn *c)
{
    if (unlikely(d->replay.book != NULL)) {
        replay_offer(d, c);
    } else if (d->has_rooms && !c->in_room && flow_has_room(d, c)) {
        struct drive_room *room = &d->rooms[d->rooms_len > 1 ? c->server : 0];
        must(room->count < d->room_cap);
        room->ring[(room->head + room->count++) % d->room_cap] = c;
        c->in_room = true;
    }
}

/* The connection that has waited longest and may have the next request; NULL when none has
 * room. */
static struct lconn *
take_room(struct drive *d)
{
    struct drive_room *room = &d->rooms[generator_server(&d->ask)];
    while (room->count > 0) {
        struct lconn *c = room->ring[room->head];
        room->head = (room->head + 1) % d->room_cap;
        room->count--;
        c->in_room = false;
        if (flow_has_room(d, c)) {
            return c;
        }
    }
    return NULL;
}

bool
flow_is_unreachable(const struct drive *d, unsigned server)
{
    for (unsigned i = 0; i < d->set->count; i++) {
        const struct lconn *c = &d->set->conns[i];
        if (c->server == server && c->state == LCONN_UP) {
            return false;
        }
    }
    return true;
}

/* Of servers that share the keys, one that cannot be reached must not hold up what others
 * are to be asked: whether the next request is one that nobody will take. */
static bool
is_unreachable(struct drive *d)
{
    return d->rooms_len > 1 && flow_is_unreachable(d, generator_server(&d->ask));
}

static void
make_dirty(struct drive *d, struct lconn *c)
{
    if (!c->is_dirty) {
        c->is_dirty = true;
        d->dirty[d->dirty_count++] = c;
    }
}

/* ---- out --------------------------------------------------------------------------- */

static void
count_push(struct drive *d, const struct lconn *c)
{
    struct life *l = drive_life(d, c);
    l->left -= l->left != LIFE_FOREVER ? 1 : 0;
    d->outstanding++;
}

void
flow_count_push(struct drive *d, struct lconn *c)
{
    count_push(d, c);
    make_dirty(d, c);
}

/* True when it was all of the request, not a part of it for one of several servers. */
static bool
push(struct drive *d, struct lconn *c, nsec_t intended, uint32_t tag)
{
    count_push(d, c);
    return generator_push(&d->ask, c, intended, tag);
}

/* Requests that follow from answers go before others. False when some have to wait; at the
 * end of the window they wait for ever. */
static bool
push_followups(struct drive *d, struct lconn *c, nsec_t now)
{
    while (c->followups.count > 0) {
        if (!lconn_has_room(c, d->conf.depth) || now >= d->window.end) {
            return false;
        }
        const struct request_op *op = lconn_push_followup(c, d->w);
        d->outstanding++;
        ctr_add(&d->tally->offered, drive_measures(d, op->intended) ? 1 : 0);
        if (unlikely(d->fetch.queued > 0)) {
            fetch_refill(d, c);
        }
        if (d->has_rooms || d->replay.book != NULL) {
            make_dirty(d, c);
        }
    }
    return true;
}

static void
time_passes(struct drive *d, nsec_t now)
{
    ctr_add(&d->tally->on_their_way,
            little_pass(&d->little, d->window.start, d->window.end, now));
}

/* All of it was sent, but for its entry as offered and sent in a closed loop, which has no other
 * intention than to send it now: true then, when it counts. */
static bool
issue(struct drive *d, struct request_op *op, unsigned outstanding, nsec_t now)
{
    op->issued = now;
    d->little.count += likely(op->verb != CODEC_AUTH) ? 1 : 0;
    bool is_prompt = op->intended == 0;
    op->intended = is_prompt ? now : op->intended;
    if (!drive_measures(d, op->intended)) {
        return false;
    }
    hist_record(d->tally->outstanding, outstanding);
    if (op->tag != TAG_NONE) {
        gaps_note(&d->issued, d->tally->gaps_issued, now);
    }
    if (!is_prompt) {
        tally_sent(d->tally, now - op->intended, 1);
    }
    return is_prompt;
}

/* So many requests were sent when they were meant to be. */
static void
count_prompt(struct drive *d, unsigned n)
{
    if (n > 0) {
        ctr_add(&d->tally->offered, n);
        tally_sent(d->tally, 0, n);
    }
}

void
flow_issued(struct drive *d, struct request_op *op, unsigned outstanding, nsec_t now)
{
    time_passes(d, now);
    count_prompt(d, issue(d, op, outstanding, now) ? 1 : 0);
}

bool
flow_flush(struct drive *d, struct lconn *c)
{
    size_t sent;
    nsec_t now = clock_now();
    bool is_up = lset_flush(d->set, c, now, &sent);
    unsigned before = c->count - c->fresh - c->issued, prompt = 0;
    time_passes(d, now);
    for (unsigned i = 0; i < c->issued; i++) {
        prompt += issue(d, lconn_issued_op(c, i), before + i + 1, now) ? 1 : 0;
    }
    count_prompt(d, prompt);
    if (drive_measures(d, now)) {
        ctr_add(&d->tally->tx_bytes, sent);
    }
    d->moved_requests += c->issued;
    d->moved_bytes += sent;
    if (!is_up) {
        life_lose(d, c, TALLY_DISCONNECT, now);
        return false;
    }
    return true;
}

void
flow_flush_all(struct drive *d)
{
    for (unsigned i = 0; i < d->dirty_count; i++) {
        struct lconn *c = d->dirty[i];
        c->is_dirty = false;
        if (c->state != LCONN_UP || !flow_flush(d, c)) {
            continue;
        }
        /* A full buffer may have been the limit. */
        if (unlikely(d->replay.book != NULL)) {
            replay_note(d, c);
        } else {
            flow_offer(d, c);
        }
    }
    d->dirty_count = 0;
}

/* Closed loop over servers that share the keys: requests go to whom they belong, until one of
 * these has no room. */
static void
hand_out(struct drive *d, nsec_t now)
{
    struct lconn *c;
    unsigned dropped = 0;
    while (drive_sends(d, now) && dropped < d->set->count) {
        if ((c = take_room(d)) != NULL) {
            push(d, c, 0, TAG_ALONE);
            make_dirty(d, c);
            flow_offer(d, c);
        } else if (is_unreachable(d)) {
            generator_drop(&d->ask);
            dropped++;
        } else {
            return;
        }
    }
}

/* Fills a closed loop's connection up to its depth. */
static bool
refill(struct drive *d, struct lconn *c, nsec_t now)
{
    if (d->has_rooms) {
        push_followups(d, c, now);
        flow_offer(d, c);
        hand_out(d, now);
        return true;
    }
    if (unlikely(d->replay.book != NULL)) {
        if (push_followups(d, c, now) && drive_sends(d, now)) {
            replay_offer(d, c);
        }
        return true;
    }
    while (c->count < d->conf.depth && drive_sends(d, now)) {
        unsigned before = c->count;
        if (unlikely(c->followups.count > 0)) {
            push_followups(d, c, now);
        }
        while (flow_has_room(d, c)) {
            push(d, c, 0, TAG_ALONE);
        }
        if (c->count == before) {
            return true;
        }
        if (!flow_flush(d, c)) {
            return false;
        }
    }
    return true;
}

bool
flow_fill(struct drive *d, struct lconn *c, nsec_t now)
{
    if (!drive_is_open(d)) {
        return refill(d, c, now);
    }
    push_followups(d, c, now);
    flow_offer(d, c);
    return true;
}

/* ---- what is due -------------------------------------------------------------------- */

struct due {
    nsec_t when;
    bool is_session; /* the next request of one that has begun */
};

/* A session that begins must have a place to wait between its requests. */
static bool
has_place(const struct drive *d)
{
    return !is_partly(d) || d->sessions.count + d->outstanding < d->sessions.capacity;
}

static struct due
next_due(const struct drive *d)
{
    nsec_t session = alarms_next(&d->sessions);
    bool is_session = session <= d->next || (session != ALARMS_NEVER && !has_place(d));
    return (struct due){is_session ? session : d->next, is_session};
}

static uint32_t
session_size(struct drive *d)
{
    const struct dist *size = &d->conf.traffic.session;
    return is_partly(d)
               ? (uint32_t)dist_size(size, rng_unit(&d->rng), 1, TRAFFIC_SESSION_MAX)
               : TAG_ALONE;
}

/* The requests left in its session, it included. */
static uint32_t
tag_of(struct drive *d, struct due due)
{
    if (due.is_session) {
        return d->sessions.heap[0].value;
    }
    if (d->next_tag == 0) {
        d->next_tag = session_size(d);
    }
    return d->next_tag;
}

static void
count_offered(struct drive *d, nsec_t intended)
{
    if (drive_measures(d, intended)) {
        ctr_add(&d->tally->offered, 1);
        gaps_note(&d->intended, d->tally->gaps_intended, intended);
    }
}

static void
take_due(struct drive *d, struct due due)
{
    count_offered(d, due.when);
    if (due.is_session) {
        alarms_pop(&d->sessions);
    } else {
        d->next = arrival_next(&d->arrival);
        d->next_tag = 0;
    }
}

/* It is not sent. */
static void
pass_over(struct drive *d, struct due due, ctr_t *why)
{
    if (drive_measures(d, due.when)) {
        tally_censored(d->tally, why, d->window.end - due.when);
    }
    generator_drop(&d->ask);
    take_due(d, due);
}

/* A part of a request that is not its last is one more that is offered. */
static void
give(struct drive *d, struct lconn *c, struct due due, nsec_t now)
{
    if (drive_measures(d, due.when)) {
        hist_record(d->tally->late, due.when <= d->late_until ? now - due.when : 0);
    }
    if (push(d, c, due.when, tag_of(d, due))) {
        take_due(d, due);
    } else {
        count_offered(d, due.when);
    }
    make_dirty(d, c);
    flow_offer(d, c);
}

static bool
may_send(const struct drive *d, struct due due)
{
    return d->outstanding < d->outstanding_max && (due.is_session || has_place(d));
}

static void
send_scheduled(struct drive *d, nsec_t now)
{
    for (;;) {
        struct due due = next_due(d);
        if (due.when > now || due.when >= d->window.end) {
            return;
        }
        enum pacing_verdict verdict = pacing_judge(&d->pacing, due.when, now);
        if (verdict == PACING_DROP) {
            pass_over(d, due, &d->tally->skipped);
            continue;
        }
        if (verdict == PACING_WAIT || !may_send(d, due)) {
            return;
        }
        struct lconn *c = take_room(d);
        if (c != NULL) {
            if (d->pacing.late == LATE_CAP) {
                pacer_take(&d->pacing.cap, now);
            }
            give(d, c, due, now);
        } else if (is_unreachable(d)) {
            pass_over(d, due, &d->tally->unsent);
        } else {
            return;
        }
    }
}

/* A user has thought: an open loop may use its place again, in a closed one it asks. */
static void
wake_user(struct drive *d, struct alarm_entry user, nsec_t now)
{
    struct lconn *c = &d->set->conns[user.who];
    drive_life(d, c)->resting--;
    if (drive_is_open(d)) {
        flow_offer(d, c);
    } else if (d->has_rooms) {
        refill(d, c, now);
    } else if (drive_sends(d, now) && flow_has_room(d, c)) {
        count_offered(d, user.when);
        push(d, c, user.when, TAG_ALONE);
        make_dirty(d, c);
    }
}

void
flow_send_due(struct drive *d, nsec_t now)
{
    while (alarms_next(&d->users) <= now) {
        wake_user(d, alarms_pop(&d->users), now);
    }
    if (d->could_send) {
        d->late_until =
            now; /* what was due before came too late by this thread's doing */
    }
    if (unlikely(d->replay.book != NULL)) {
        replay_send_due(d, now);
    } else if (drive_is_open(d)) {
        send_scheduled(d, now);
    }
}

nsec_t
flow_next_due(struct drive *d)
{
    nsec_t user = alarms_next(&d->users), when = ALARMS_NEVER;
    d->could_send = false;
    if (unlikely(d->replay.book != NULL)) {
        return replay_next_due(d);
    }
    if (drive_is_open(d) &&
        (d->rooms[generator_server(&d->ask)].count > 0 || is_unreachable(d))) {
        struct due due = next_due(d);
        d->could_send = may_send(d, due) && d->pacing.late != LATE_CAP;
        when = may_send(d, due) ? due.when : ALARMS_NEVER;
        if (d->pacing.late == LATE_CAP &&
            when + PACING_LATE < pacer_next(&d->pacing.cap)) {
            when = pacer_next(&d->pacing.cap);
        }
    }
    return user < when ? user : when;
}

/* ---- afterwards --------------------------------------------------------------------- */

static nsec_t
think(struct drive *d)
{
    const struct dist *law = &d->conf.traffic.think;
    double u = law->kind == DIST_FIXED ? 0.5 : rng_unit(&d->rng);
    double ns = dist_value(law, u) * (double)NSEC_PER_SEC;
    return ns < 1e18 ? (nsec_t)ns : (nsec_t)1e18;
}

void
flow_answered(struct drive *d, struct lconn *c, const struct request_op *op, nsec_t now)
{
    const struct traffic *t = &d->conf.traffic;
    if (likely(op->verb != CODEC_AUTH)) {
        d->outstanding--;
        time_passes(d, now);
        d->little.count--;
    }
    if (is_partly(d) && op->tag > TAG_ALONE) {
        alarms_push(&d->sessions, (struct alarm_entry){now + think(d), 0, op->tag - 1});
    } else if (!is_partly(d) && op->tag == TAG_ALONE && traffic_thinks(t)) {
        drive_life(d, c)->resting++;
        alarms_push(&d->users,
                    (struct alarm_entry){now + think(d), drive_index(d, c), 0});
    }
}

void
flow_forget(struct drive *d, struct lconn *c, ctr_t *sent, nsec_t now)
{
    struct request_op op;
    while (lconn_take_op(c, &op)) {
        d->outstanding -= op.verb != CODEC_AUTH ? 1 : 0;
        if (op.issued != 0 && op.verb != CODEC_AUTH) {
            time_passes(d, now);
            d->little.count--;
        }
        if (drive_measures(d, op.intended)) {
            nsec_t waited = now > op.intended ? now - op.intended : 0;
            tally_censored(d->tally, op.issued == 0 ? &d->tally->unsent : sent, waited);
        }
    }
}

static void
give_up(struct drive *d, struct due due, nsec_t now)
{
    take_due(d, due);
    if (drive_measures(d, due.when)) {
        tally_censored(d->tally, &d->tally->unsent, now - due.when);
    }
}

void
flow_end(struct drive *d, nsec_t now)
{
    if (d->replay.book != NULL) {
        replay_end(d, now);
    }
    while (alarms_next(&d->sessions) < d->window.end) {
        give_up(d, (struct due){alarms_next(&d->sessions), true}, now);
    }
    while (drive_is_open(d) && d->next < d->window.end) {
        give_up(d, (struct due){d->next, false}, now);
    }
}
