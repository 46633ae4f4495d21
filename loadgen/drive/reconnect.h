/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A thread's connections as they come and go: lost and opened again, closed after so many
 * requests, given up when nothing comes. It says what is to be done, the loop does it. Its
 * thread only.
 */
#pragma once

#include "loadgen/drive/alarms.h"
#include "loadgen/drive/drive.h"

struct reconnect {
    struct drive *d;
    struct alarms alarms; /* when to connect, by connection */
    struct pacer pacer;
};

void reconnect_init(struct reconnect *r, struct drive *d);
void reconnect_fini(struct reconnect *r);

/* c is up: its lifetime begins. */
void reconnect_begin(struct reconnect *r, const struct lconn *c);
/* c is lost: closes it; it is opened again when its time has come. */
void reconnect_lose(struct reconnect *r, struct lconn *c, enum counters_error why,
                    nsec_t now);
/* c is closed, which is no error: the server has said so, or it has served its requests. */
void reconnect_replace(struct reconnect *r, struct lconn *c, nsec_t now);

/* When the next one is to be opened; ALARMS_NEVER. */
static inline nsec_t
reconnect_next_due(const struct reconnect *r)
{
    return alarms_next(&r->alarms);
}
/* That one; NULL: it has to wait for its turn, by --connect-rate. */
struct lconn *reconnect_take(struct reconnect *r, nsec_t now);
/* Opens it, or goes on with one that was begun. False when the attempt has failed. */
must_check bool reconnect_go_on(struct reconnect *r, struct lconn *c, nsec_t now);

/* c has sent all requests of its life and has the answers. */
static inline bool
reconnect_is_spent(const struct reconnect *r, const struct lconn *c)
{
    return drive_conn_of(r->d, c)->left == 0 && c->count == 0 && c->followups.count == 0;
}
/* Nothing came on c in time: *why it is lost then. */
must_check bool reconnect_is_overdue(const struct reconnect *r, const struct lconn *c,
                                     nsec_t now, enum counters_error *why);
/* Counts those that were asked, and have said nothing since the run began, were they made anew
 * or not. Before what is on its way at the end is forgotten. */
void reconnect_count_unserved(const struct reconnect *r);
