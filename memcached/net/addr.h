/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Socket addresses as text, the way "stats conns" shows them: "tcp:127.0.0.1:11211",
 * "tcp6:[::1]:11211", "udp:0.0.0.0:11211", "unix:/path".
 */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

/* transport is "tcp" or "udp"; a UNIX address says so itself. */
void addr_format(const char *transport, const struct sockaddr *addr, socklen_t len,
                 char *dst, size_t dst_len);
