/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Connections with room for a request, in turn: of all, or of each server when they share the
 * keys. And users that think: from an answer until the next request of its user, a place of the
 * connection's depth rests. Its thread only; no allocation after rooms_init.
 */
#pragma once

#include "loadgen/drive/alarms.h"
#include "loadgen/drive/sender.h"

/* A ring of rooms.cap places. */
struct rooms_ring {
    struct lconn **conns;
    unsigned head, count;
};

struct rooms {
    struct sender *sender;
    struct rooms_ring *rings;
    unsigned len, cap;
    struct alarms users; /* by connection; no room for any where they do not think */
};

void rooms_init(struct rooms *r, struct sender *sender);
void rooms_fini(struct rooms *r);

/* c has its turn if it has room. */
void rooms_offer(struct rooms *r, struct lconn *c);
/* The connection of that server that has waited longest and has room; NULL when none has. */
struct lconn *rooms_take(struct rooms *r, unsigned server);

/* Of servers that share the keys, one that cannot be reached must not hold up requests to
 * others: whether no connection will take a request for this one. */
static inline bool
rooms_are_lost(const struct rooms *r, unsigned server)
{
    return r->len > 1 && drive_is_unreachable(r->sender->d, server);
}

static inline bool
rooms_users_think(const struct rooms *r)
{
    return r->users.capacity > 0;
}
/* A user of c has its answer. */
void rooms_rest(struct rooms *r, const struct lconn *c, nsec_t now);
/* When the next user has thought; ALARMS_NEVER. */
static inline nsec_t
rooms_next_due(const struct rooms *r)
{
    return alarms_next(&r->users);
}
/* That user's connection. */
struct lconn *rooms_wake(struct rooms *r);
