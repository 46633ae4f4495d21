/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Socket addresses as text, the way "stats conns" shows them: "tcp:127.0.0.1:11211",
 * "tcp6:[::1]:11211", "udp:0.0.0.0:11211", "unix:/path".
 */
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/must.h"

#define ADDR_IP_BYTES 16

/* The other end of a connection. */
struct peer {
    union {
        struct sockaddr any; /* its family alone, for UNIX sockets */
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr;
    socklen_t len;
    uint64_t key; /* the same for all connections from an address; 0: UNIX sockets */
};

/* transport is "tcp" or "udp"; a UNIX address says so itself. */
void addr_format(const char *transport, const struct sockaddr *addr, socklen_t len,
                 char *dst, size_t dst_len);

/* The same of the address that the socket is bound to. */
void addr_format_own(const char *transport, int fd, char *dst, size_t dst_len);

/* The host in what addr_format has written. */
void addr_put_host(const char *formatted, char *dst, size_t dst_len);

/* `seed`: without it the choice of an address would be that of its key. */
struct peer addr_peer(const struct sockaddr *addr, socklen_t len, uint64_t seed);
/* IPv4 mapped into IPv6. False: no network address. */
must_check bool addr_ip(const struct peer *peer, uint8_t ip[ADDR_IP_BYTES]);
/* Whether it is on this machine for certain: a UNIX socket or a loopback address. */
bool addr_is_local(const struct peer *peer);
/* As addr_format for the peer of that socket. True: it came over the network. A UNIX socket's
 * client may have a name: it is asked for here, where there is room for it. */
bool addr_describe(const struct peer *peer, int fd, char *dst, size_t dst_len);
