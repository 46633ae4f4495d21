/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Connections that speak TLS: conn.c's input and output by way of sock/tls.h, and the end of
 * those that do not finish their handshake. The worker's thread.
 */
#pragma once

#include "net/conn.h"
#include "sock/tls.h"

#define CONN_TLS_SECONDS 10 /* from the accept to the end of the handshake */

/* False: no memory. */
must_check bool conn_tls_begin(struct conn *c, enum tls_mode mode);
/* Nothing when there is none. */
void conn_tls_end(struct conn *c);
/* The session goes to another owner, or NULL: there is none. */
struct tls_session *conn_tls_take(struct conn *c);
/* Up to room bytes, maybe none with IO_OK. A handshake is deferred work: IO_LATER. */
must_check enum io conn_tls_recv(struct conn *c, bool is_inline, char *to, size_t room,
                                 size_t *got);
/* *sent bytes of the runs have gone; IO_OK: all. */
must_check enum io conn_tls_send(struct conn *c, const struct iovec *iov, unsigned runs,
                                 size_t *sent);
/* Closes the connections whose time for the handshake is over. */
void conn_tls_expire(struct worker *w);
