/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a connection reads and writes, over TLS or not, and what the system calls say of its
 * edges. The worker's thread. A connection that fails is closed here.
 */
#pragma once

#include "net/conn.h"

/* Output is written in pieces of this size, and nothing new is started for a connection that
 * has a whole piece waiting. Smaller pieces cost the bulk class bandwidth, a system call
 * each; larger ones cost everybody else latency. */
#define OUT_PIECE_BYTES 131072

/* Receives once into the input buffer. */
must_check enum io conn_fill(struct conn *c, const struct turn *turn);
/* Receives once, bytes of a body, straight into the item. */
must_check enum io conn_fill_body(struct conn *c, const struct turn *turn);
/* Writes one piece of the output. IO_AGAIN: the socket is full. */
must_check enum io conn_flush(struct conn *c);
