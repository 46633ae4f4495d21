/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Closed loop: each connection always has as many outstanding requests as its depth, but for
 * those of users that think. Over servers that share the keys a request goes to its key's one,
 * and the next is not made before this one has a place.
 */
#include "loadgen/drive/source.h"

#include "base/alloc.h"
#include "loadgen/drive/rooms.h"

struct closed {
    struct source base;
    struct generator generator;
    struct rooms rooms; /* rings: only of servers that share the keys */
};

static nsec_t
next_due(struct source *s)
{
    return rooms_next_due(&((struct closed *)s)->rooms);
}

static inline void
give(struct source *s, struct lconn *c, nsec_t intended)
{
    sender_count_push(s->sender, c);
    generator_push(&((struct closed *)s)->generator, c, intended, TAG_ALONE);
}

static void
answered(struct source *s, struct lconn *c, const struct request_op *op, nsec_t now)
{
    struct rooms *rooms = &((struct closed *)s)->rooms;
    if (op->tag == TAG_ALONE && unlikely(rooms_users_think(rooms))) {
        rooms_rest(rooms, c, now);
    }
}

static void
destroy(struct source *s)
{
    struct closed *closed = (struct closed *)s;
    generator_fini(&closed->generator);
    rooms_fini(&closed->rooms);
    free(closed);
}

/* ---- each connection for itself ------------------------------------------------------- */

/* When the user that has a place now wanted it; 0: now. */
static nsec_t
wanted(struct source *s, const struct lconn *c)
{
    struct drive_conn *dc = drive_conn_of(s->d, c);
    nsec_t when = dc->wanted_at;
    if (unlikely(when != 0)) {
        dc->wanted_at = 0;
        drive_count(s->d, &s->d->counters->offered, when);
    }
    return when;
}

static void
push(struct source *s, struct lconn *c, nsec_t now)
{
    bool sends = drive_sends(s->d, now);
    while (sends && c->count < s->d->conf.depth) {
        uint64_t n = sender_room(s->sender, c);
        sends = n > 0;
        for (; n > 0; n--) {
            give(s, c, wanted(s, c));
        }
    }
}

static void
send_due(struct source *s, nsec_t now)
{
    struct closed *closed = (struct closed *)s;
    nsec_t when;
    generator_at(&closed->generator, now - s->d->window.begin);
    while ((when = rooms_next_due(&closed->rooms)) <= now) {
        struct lconn *c = rooms_wake(&closed->rooms);
        struct drive_conn *dc = drive_conn_of(s->d, c);
        if (!drive_sends(s->d, now)) {
            continue;
        }
        if (sender_has_room(s->sender, c)) {
            drive_count(s->d, &s->d->counters->offered, when);
            give(s, c, when);
            sender_make_dirty(s->sender, c);
        } else if (dc->wanted_at == 0) { /* of several the first */
            dc->wanted_at = when;
        }
    }
}

static const struct source_ops plain_ops = {
    .next_due = next_due,
    .send_due = send_due,
    .push = push,
    .answered = answered,
    .destroy = destroy,
};

/* ---- over servers that share the keys ------------------------------------------------- */

static void
offer(struct source *s, struct lconn *c)
{
    rooms_offer(&((struct closed *)s)->rooms, c);
}

/* Requests go to the servers of their keys, until one of these has no room. */
static void
push_shared(struct source *s, struct lconn *c, nsec_t now)
{
    struct closed *closed = (struct closed *)s;
    unsigned dropped = 0;
    rooms_offer(&closed->rooms, c);
    while (drive_sends(s->d, now) && dropped < s->d->set->count) {
        unsigned server = generator_server(&closed->generator);
        if ((c = rooms_take(&closed->rooms, server)) != NULL) {
            give(s, c, 0);
            sender_make_dirty(s->sender, c);
            rooms_offer(&closed->rooms, c);
        } else if (rooms_are_lost(&closed->rooms, server)) {
            generator_drop(&closed->generator);
            dropped++;
        } else {
            return;
        }
    }
}

static void
send_due_shared(struct source *s, nsec_t now)
{
    struct closed *closed = (struct closed *)s;
    generator_at(&closed->generator, now - s->d->window.begin);
    while (rooms_next_due(&closed->rooms) <= now) {
        push_shared(s, rooms_wake(&closed->rooms), now);
    }
}

static const struct source_ops shared_ops = {
    .next_due = next_due,
    .send_due = send_due_shared,
    .push = push_shared,
    .room = offer,
    .answered = answered,
    .destroy = destroy,
};

struct source *
source_closed_create(struct drive *d, struct sender *sender)
{
    bool is_shared = d->set->conf.shard != NULL;
    struct closed *closed = alloc_zeroed(1, sizeof *closed);
    closed->base = (struct source){
        .ops = is_shared ? &shared_ops : &plain_ops,
        .d = d,
        .sender = sender,
        .flushes_at_once = !is_shared,
        .is_deaf = !traffic_thinks(&d->conf.traffic),
    };
    drive_generator_init(d, &closed->generator);
    rooms_init(&closed->rooms, sender);
    return &closed->base;
}
