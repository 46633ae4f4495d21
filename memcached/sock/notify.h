/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the process reports to a service manager (sd_notify(3)): one datagram for each change of
 * state, to the UNIX socket that NOTIFY_SOCKET names. Without that variable nothing is
 * sent. Main thread.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"

struct notify {
    struct sockaddr_un addr;
    socklen_t len; /* 0: none */
};

/* Takes NOTIFY_SOCKET out of the environment; a value that names no socket is reported in the
 * log. Before other threads start. */
void notify_open(struct notify *n);

/* Each waits for up to a second until the manager's socket has room; where it has none, the log says so.
 * `status`: a line for people. */
void notify_ready(const struct notify *n, const char *status);
/* Followed by notify_ready. */
void notify_reloading(const struct notify *n, nsec_t now);
void notify_stopping(const struct notify *n);
