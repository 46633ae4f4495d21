/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The sockets of UDP: one for each worker and address. Main thread opens and closes; workers
 * read.
 */
#pragma once

#include "base/must.h"
#include "sock/guard.h"

struct addrinfo;

struct udp_conf {
    struct guard_conf guard;
    bool is_shared; /* all workers read one socket per address, not one each */
};

struct udp_sockets {
    struct udp_conf conf;
    int *fds;      /* [address * workers + n] */
    int *declared; /* [address]: the class of what it receives, as udp_bind was told */
    unsigned addresses;
    unsigned workers; /* that serve each address: all, or one, in turn */
};

/* Binds one address for its workers. 0, or the errno. */
int udp_bind(struct udp_sockets *s, const struct addrinfo *ai, int declared);
/* Takes a bound socket over; its workers read it together. 0, or the errno. */
int udp_adopt(struct udp_sockets *s, int fd, int declared);
void udp_close(struct udp_sockets *s);
/* "udp:127.0.0.1:11211" */
void udp_describe(const struct udp_sockets *s, unsigned address, char *dst,
                  size_t dst_len);
