/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The address of a server under test. Resolved once at start; constant after.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/must.h"

#define TARGET_PORT "11211"
#define TARGET_NAME_MAX 256

/* What is spoken beneath the protocol. */
enum transport {
    TRANSPORT_TCP,
    TRANSPORT_UNIX,
    TRANSPORT_UDP,
    TRANSPORT_TLS,
    TRANSPORTS,
};

struct target {
    char name[TARGET_NAME_MAX]; /* as the user wrote it */
    char host[TARGET_NAME_MAX]; /* of it; a UNIX socket's path */
    uint16_t port;              /* 0: none */
    enum transport transport;
    struct sockaddr_storage addr;
    socklen_t addr_len;
    bool is_local; /* on this machine: client and server share its CPUs */
};

/* "host", "host:port", "v6", "[v6]", "[v6]:port" or "unix:PATH". False with a sentence. */
must_check bool target_resolve(struct target *t, const char *text, char *err,
                               size_t err_len);
