/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The socket beneath a connection and what it speaks: a stream (TCP, UNIX), TLS over one, or
 * datagrams. Never waits. Its thread only; no allocation but for TLS while connecting.
 */
#pragma once

#include "base/must.h"
#include "loadgen/wire/target.h"

struct ltls;
struct ltls_session;

enum link_io {
    LINK_OK,
    LINK_AGAIN, /* send: not before the socket is writable; receive: nothing there;
                   open: the listener's queue is full; go on: not before it is ready */
    LINK_LOST,
};

struct link {
    int fd;                   /* -1: closed */
    bool is_datagram;         /* one of no bytes is no end */
    struct ltls_session *tls; /* NULL: none */
    bool is_connected;        /* what remains is the TLS handshake */
    bool wants_write;         /* AGAIN: until it is writable; else until readable */
};

struct link_conf {
    const struct target *target;
    struct ltls *tls; /* of targets that speak TLS */
    bool with_nodelay;
    uint16_t src_port; /* local; 0: any */
};

/* Begins to connect. OK: link_go_on says when it is done. LOST with errno's text in *why. */
must_check enum link_io link_open(struct link *l, const struct link_conf *conf,
                                  const char **why);
/* Goes on: OK is connected; AGAIN: call again when the socket is what wants_write says. */
must_check enum link_io link_go_on(struct link *l, const struct link_conf *conf,
                                   const char **why);
void link_close(struct link *l);

/* Up to len bytes, a whole datagram at once. *sent may be less than len with OK. */
must_check enum link_io link_send(struct link *l, const char *bytes, size_t len,
                                  size_t *sent);
/* OK: *len bytes, at least one but of datagrams. *has_more: call again, no event may say so. */
must_check enum link_io link_receive(struct link *l, char *to, size_t room, size_t *len,
                                     bool *has_more);
