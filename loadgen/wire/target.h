/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The address of a server under test. Resolved once at start; constant after.
 */
#pragma once

#include <sys/socket.h>

#include "base/clock.h"
#include "base/must.h"

#define TARGET_PORT "11211"
#define TARGET_NAME_MAX 256
#define TARGET_PLACE_MAX (TARGET_NAME_MAX + 16)

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
    bool is_local;     /* on this machine: client and server share its CPUs */
    bool is_malformed; /* the text is no address, whatever names there are */
};

extern const char *const transport_names[TRANSPORTS];

/* "host", "host:port", "v6", "[v6]", "[v6]:port" or "unix:PATH", each also behind
 * "TRANSPORT://"; `otherwise` is spoken where none is named. False with a sentence and
 * is_malformed. */
must_check bool target_resolve(struct target *t, const char *text,
                               enum transport otherwise, char *err, size_t err_len);

/* The same over TCP or a UNIX socket, without a transport; `port` where it has none. At most
 * TARGET_NAME_MAX - 1 bytes. */
must_check bool target_resolve_at(struct target *t, const char *text, const char *port,
                                  char *err, size_t err_len);
/* A connected socket that does not block, waited for until then; -1 with errno. */
must_check int target_connect(const struct target *t, nsec_t until);
/* Where it is, for messages: its name, with the port where the name has none. */
const char *target_place(const struct target *t, char place[TARGET_PLACE_MAX]);

/* "...:FIRST-LAST" is a range of ports: its length, 0 when it makes no sense, and where in
 * the text it stands; 1 with everything else (and *at as it was). */
unsigned target_ports(const char *text, size_t *at, unsigned *first);
