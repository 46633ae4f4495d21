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

/* When users had thought that found no place, in order: a ring. */
struct wanted {
    nsec_t *when;
    unsigned cap, head, count;
};

struct closed {
    struct source base;
    struct generator generator;
    struct rooms rooms;    /* rings: only of servers that share the keys */
    struct wanted *wanted; /* one each connection; of servers that share the keys one */
    unsigned wanted_len;   /* 0: users do not think */
};

static struct wanted *
wanted_of(struct closed *closed, const struct lconn *c)
{
    return &closed->wanted[closed->wanted_len > 1 ? c->index : 0];
}

static void
wanted_push(struct wanted *w, nsec_t when)
{
    must(w->count < w->cap);
    w->when[(w->head + w->count++) % w->cap] = when;
}

static nsec_t
wanted_pop(struct wanted *w)
{
    nsec_t when = w->when[w->head];
    w->head = (w->head + 1) % w->cap;
    w->count--;
    return when;
}

static nsec_t
next_due(struct source *s)
{
    return rooms_next_due(&((struct closed *)s)->rooms);
}

/* To the user that has waited for longest, or one that wants it now. */
static inline void
give(struct source *s, struct lconn *c)
{
    struct closed *closed = (struct closed *)s;
    nsec_t intended = 0; /* when it is sent */
    if (unlikely(closed->wanted_len > 0) && wanted_of(closed, c)->count > 0) {
        intended = wanted_pop(wanted_of(closed, c));
        drive_count(s->d, &s->d->counters->offered, intended);
    }
    sender_count_push(s->sender, c);
    generator_push(&closed->generator, c, intended, TAG_ALONE);
}

static void
answered(struct source *s, struct lconn *c, const struct request_op *op, nsec_t now)
{
    struct rooms *rooms = &((struct closed *)s)->rooms;
    if (op->tag == TAG_ALONE && unlikely(rooms_users_think(rooms))) {
        rooms_rest(rooms, c, now);
    }
}

/* Those that wait still. */
static void
end(struct source *s, nsec_t now)
{
    struct closed *closed = (struct closed *)s;
    for (unsigned i = 0; i < closed->wanted_len; i++) {
        while (closed->wanted[i].count > 0) {
            nsec_t when = wanted_pop(&closed->wanted[i]);
            drive_count(s->d, &s->d->counters->offered, when);
            drive_give_up(s->d, &s->d->counters->unsent, when, now);
        }
    }
}

static void
destroy(struct source *s)
{
    struct closed *closed = (struct closed *)s;
    for (unsigned i = 0; i < closed->wanted_len; i++) {
        free(closed->wanted[i].when);
    }
    free(closed->wanted);
    generator_fini(&closed->generator);
    rooms_fini(&closed->rooms);
    free(closed);
}

/* ---- each connection for itself ------------------------------------------------------- */

static void
push(struct source *s, struct lconn *c, nsec_t now)
{
    bool sends = drive_sends(s->d, now);
    while (sends && c->count < s->d->conf.depth) {
        uint64_t n = sender_room(s->sender, c);
        sends = n > 0;
        for (; n > 0; n--) {
            give(s, c);
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
        if (!drive_sends(s->d, now)) {
            continue;
        }
        wanted_push(wanted_of(closed, c), when);
        if (sender_has_room(s->sender, c)) {
            give(s, c);
            sender_make_dirty(s->sender, c);
        }
    }
}

static const struct source_ops plain_ops = {
    .next_due = next_due,
    .send_due = send_due,
    .push = push,
    .answered = answered,
    .end = end,
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
            give(s, c);
            sender_make_dirty(s->sender, c);
            rooms_offer(&closed->rooms, c);
        } else if (rooms_are_lost(&closed->rooms, server)) {
            (void)generator_skip(&closed->generator);
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
    nsec_t when;
    while ((when = rooms_next_due(&closed->rooms)) <= now) {
        struct lconn *c = rooms_wake(&closed->rooms);
        if (drive_sends(s->d, now)) {
            wanted_push(wanted_of(closed, c), when);
        }
        push_shared(s, c, now);
    }
}

static const struct source_ops shared_ops = {
    .next_due = next_due,
    .send_due = send_due_shared,
    .push = push_shared,
    .room = offer,
    .answered = answered,
    .end = end,
    .destroy = destroy,
};

/* Of all users that think each is on its way, rests or waits. */
static void
init_wanted(struct closed *closed, unsigned len)
{
    if (!rooms_users_think(&closed->rooms)) {
        return;
    }
    closed->wanted_len = len;
    closed->wanted = alloc_zeroed(len, sizeof *closed->wanted);
    for (unsigned i = 0; i < len; i++) {
        struct wanted *w = &closed->wanted[i];
        w->cap = closed->rooms.users.capacity / len;
        w->when = alloc_zeroed(w->cap, sizeof *w->when);
    }
}

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
    init_wanted(closed, is_shared ? 1 : d->set->count);
    return &closed->base;
}
