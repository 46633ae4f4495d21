/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The shortest way of a request: a connection at rest that sends plain requests (serve/plain.h),
 * while no policy has a say in them. Most requests of most servers are of this kind. They are
 * received, executed and answered in the worker's space; the first other byte makes it a turn as any.
 *
 * The worker's thread.
 */
#pragma once

#include "net/conn.h"

/* Nothing of it is under way. Asked when a turn ends so, and known when there is something to read:
 * c->is_at_rest. */
must_check bool conn_is_at_rest(const struct conn *c);
/* And there is something to read, of which no policy or watcher wants to know more. */
must_check bool conn_is_plain(const struct conn *c, struct turn *turn);
/* Serves one. False: the turn goes on, with what is left in the connection's buffers. True: it is
 * over; the connection may be closed, or wait for its next turn. */
must_check bool conn_serve_plain(struct conn *c, struct turn *turn);
/* The same for gets of many keys, in a turn of bulk ones. */
must_check bool conn_serve_lines(struct conn *c, struct turn *turn);
