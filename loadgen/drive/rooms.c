/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/drive/rooms.h"

#include "base/alloc.h"

void
rooms_init(struct rooms *r, struct sender *sender)
{
    const struct drive *d = sender->d;
    const struct lset *set = d->set;
    unsigned users = traffic_thinks(&d->conf.traffic) ? set->count * d->conf.depth : 0;
    *r = (struct rooms){
        .sender = sender,
        .len = set->conf.shard != NULL ? set->conf.targets_len : 1,
    };
    r->cap = set->count / r->len;
    r->rings = alloc_zeroed(r->len, sizeof *r->rings);
    alarms_init(&r->users, users);
    for (unsigned i = 0; i < r->len; i++) {
        r->rings[i].conns = alloc_zeroed(r->cap, sizeof(struct lconn *));
    }
}

void
rooms_fini(struct rooms *r)
{
    for (unsigned i = 0; i < r->len; i++) {
        free(r->rings[i].conns);
    }
    free(r->rings);
    alarms_fini(&r->users);
}

void
rooms_offer(struct rooms *r, struct lconn *c)
{
    if (c->in_room || !sender_has_room(r->sender, c)) {
        return;
    }
    struct rooms_ring *ring = &r->rings[r->len > 1 ? c->server : 0];
    must(ring->count < r->cap);
    ring->conns[(ring->head + ring->count++) % r->cap] = c;
    c->in_room = true;
}

struct lconn *
rooms_take(struct rooms *r, unsigned server)
{
    struct rooms_ring *ring = &r->rings[server];
    while (ring->count > 0) {
        struct lconn *c = ring->conns[ring->head];
        ring->head = (ring->head + 1) % r->cap;
        ring->count--;
        c->in_room = false;
        if (sender_has_room(r->sender, c)) {
            return c;
        }
    }
    return NULL;
}

void
rooms_rest(struct rooms *r, const struct lconn *c, nsec_t now)
{
    struct drive *d = r->sender->d;
    nsec_t when = now + drive_draw_time(d, &d->conf.traffic.think);
    drive_conn_of(d, c)->resting++;
    alarms_push(&r->users, (struct alarm_entry){when, c->index, 0});
}

struct lconn *
rooms_wake(struct rooms *r)
{
    struct drive *d = r->sender->d;
    struct lconn *c = &d->set->conns[alarms_pop(&r->users).who];
    drive_conn_of(d, c)->resting--;
    return c;
}
