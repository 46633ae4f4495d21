/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where an agent listens and a leader connects: "host", "host:port", "[v6]:port", "v6" or
 * "unix:/path". Sockets are non-blocking and closed on exec.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/must.h"

#define ENDPOINT_NAME_MAX 256

struct endpoint {
    char name[ENDPOINT_NAME_MAX]; /* for messages: with its port */
    struct sockaddr_storage addr;
    socklen_t addr_len;
};

/* `port` where the text has none. False with a sentence. */
must_check bool endpoint_resolve(struct endpoint *e, const char *text, unsigned port,
                                 char *err, size_t err_len);
/* On this machine alone. */
bool endpoint_is_local(const struct endpoint *e);
/* -1 with a sentence. */
must_check int endpoint_listen(const struct endpoint *e, char *err, size_t err_len);
must_check int endpoint_connect(const struct endpoint *e, nsec_t until, char *err,
                                size_t err_len);
/* The next connection, -1 when there is none. One from a UNIX socket is taken only from this
 * user or root. */
must_check int endpoint_accept(int fd, char *err, size_t err_len);
