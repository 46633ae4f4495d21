/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where an agent listens and a leader connects: "host", "host:port", "[v6]:port", "v6" or
 * "unix:/path". Sockets are non-blocking and closed on exec.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/wire/target.h"

/* `port` where the text has none; its name gets one, for messages. False with a sentence. */
must_check bool endpoint_resolve(struct target *t, const char *text, unsigned port,
                                 char *err, size_t err_len);
/* -1 with a sentence. */
must_check int endpoint_listen(const struct target *t, char *err, size_t err_len);
must_check int endpoint_connect(const struct target *t, nsec_t until, char *err,
                                size_t err_len);
/* The next connection, -1 when there is none. One from a UNIX socket is taken only from this
 * user or root. */
must_check int endpoint_accept(int fd, char *err, size_t err_len);
