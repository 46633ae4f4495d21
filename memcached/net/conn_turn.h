/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A connection's turns: it reads, runs requests and writes until it has to wait for the client, for
 * a token or for its next turn, or is closed. It may be another worker's then. The worker's thread.
 */
#pragma once

struct poll_source;
struct work_type;

/* Turns from the worker's queue. */
extern const struct work_type conn_work;
/* A turn where something has happened on the socket. */
void conn_on_ready(struct poll_source *source, unsigned ready);
