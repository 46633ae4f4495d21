/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a connection reads and writes, over TLS or not, and what the system calls say of its
 * edges. The worker's thread. A connection that fails is closed here.
 */
#pragma once

#include "net/conn.h"

/* Receives once into the input buffer. */
must_check enum io conn_fill(struct conn *c, const struct turn *turn);
/* Receives once, bytes of a body, straight into the item. */
must_check enum io conn_fill_body(struct conn *c, const struct turn *turn);
/* Receives once, not over TLS, into memory that is not the connection's; *got: how much came. */
must_check enum io conn_receive(struct conn *c, char *to, size_t room, size_t *got);
/* The same for sending. IO_AGAIN: the socket took less, *sent. */
must_check enum io conn_send(struct conn *c, const char *from, size_t bytes,
                             size_t *sent);
/* Writes what is in front of the output, `most` bytes at most; *sent: how much went. IO_AGAIN:
 * the socket is full. */
must_check enum io conn_flush(struct conn *c, size_t most, size_t *sent);
