/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The life of a drive's connections: lost and opened again, closed after so many requests,
 * given up when nothing comes. Its thread only.
 */
#pragma once

#include "loadgen/drive/drive.h"

/* c is up, before the window. */
void life_begin(struct drive *d, struct lconn *c);
/* c is lost with all that is on its way; it is opened again when its time has come. */
void life_lose(struct drive *d, struct lconn *c, enum tally_error why, nsec_t now);
/* c is closed, which is no error: the server has said so, or it has served its requests. */
void life_replace(struct drive *d, struct lconn *c, nsec_t now);
/* A connection that was begun is writable. */
void life_connected(struct drive *d, struct lconn *c, nsec_t now);
/* Opens those whose time has come. */
void life_open_due(struct drive *d, nsec_t now);
/* Counts the datagrams that answered nothing any more. */
void life_count_strays(struct drive *d);
/* Counts those that were asked, and have said nothing since the run began, were they made anew
 * or not. Before what is on its way at the end is forgotten. */
void life_count_unserved(struct drive *d);
/* Gives up those on which nothing came in time. */
void life_time_out(struct drive *d, nsec_t now);

/* It has sent all requests of its life and has the answers. */
static inline bool
life_is_spent(const struct drive *d, const struct lconn *c)
{
    return drive_life(d, c)->left == 0 && c->count == 0 && c->followups.count == 0;
}
