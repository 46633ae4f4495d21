/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * --admin: the thread that serves metrics, statistics and health over HTTP. It reads what
 * workers count, as "stats" does; no worker waits for it. The main thread calls these; all but
 * admin_open do nothing when there is no such server (NULL).
 */
#pragma once

#include "base/must.h"

struct admin;
struct settings;
struct stats;

/* Listens where the settings say and starts the thread; "starting" is its answer. NULL with a
 * sentence in err. Warns where others than this machine can reach it. */
must_check struct admin *admin_open(const struct settings *s, char *err, size_t err_len);
/* The server serves; *st may be read until admin_leave. False: no memory. */
must_check bool admin_serve(struct admin *a, struct stats *st);
/* The server stops: no page reads *st any more. "stopping" is the answer. */
void admin_leave(struct admin *a);
/* Ends the thread. */
void admin_close(struct admin **a);
