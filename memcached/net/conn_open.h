/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Connections begin and end: made of what an acceptor hands over, destroyed at the end of the pass
 * in which they were closed. The worker's thread.
 */
#pragma once

struct conn;
struct handoff;
struct worker;

/* Takes over handoff's descriptor; on failure it is closed and counted. */
void conn_create(struct worker *w, const struct handoff *handoff);
void conn_destroy(struct conn *c);
/* It was on its way to w, whose thread has ended. */
void conn_drop(struct conn *c, struct worker *w);
