/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Listening sockets that the process was started with (sd_listen_fds(3)): LISTEN_FDS of them
 * from descriptor 3 on, for the process LISTEN_PID, with the names LISTEN_FDNAMES. Main
 * thread, before others start.
 */
#pragma once

#include "base/must.h"

#define INHERITED_FIRST 3 /* descriptor */

enum inherited_kind { INHERITED_TCP, INHERITED_UDP, INHERITED_UNIX };

struct inherited_socket {
    int fd;
    enum inherited_kind kind;
    const char *name; /* "" without one */
};

struct inherited {
    struct inherited_socket *list;
    unsigned count; /* 0: the process opens its sockets itself */
    char *names;
};

/* Takes the variables out of the environment and looks at the sockets, which do not block and
 * are not passed on from here on. Variables for another process are passed over. False with a
 * sentence in err; to be closed in any case. */
must_check bool inherited_open(struct inherited *in, char *err, size_t err_len);
/* The sockets stay open. */
void inherited_close(struct inherited *in);
