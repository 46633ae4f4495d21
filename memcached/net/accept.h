/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Accepting: takes connections from listening sockets and gives each to the worker that
 * qos/steer.h chooses. The main thread has an acceptor; with a listener for each worker
 * (--steer=reuseport) every worker has one too.
 *
 * Owner: the thread whose poller it was started on; before and after, the thread that
 * opened the listeners.
 */
#pragma once

#include "base/must.h"

struct acceptor;
struct listen;
struct poller;
struct worker;

/* Starts accepting on what listen_open has opened: on the calling thread's poller, or in the
 * workers. False: no memory. */
must_check bool accept_start(struct listen *l, struct poller *poller,
                             struct worker *workers);
/* No new connections in this thread from here on; the sockets are closed. Those of workers
 * the workers close themselves. */
void accept_stop(struct listen *l);
/* After the workers have ended: closes and frees all that listen_open has opened. */
void accept_fini(struct listen *l);

/* ---- for a worker ---------------------------------------------------------------------- */

/* Accepts on the calling thread's poller; self: the worker whose thread it is, NULL: main's.
 * False: no memory or descriptor; to be closed then. */
must_check bool acceptor_start(struct acceptor *a, struct poller *poller,
                               struct worker *self);
/* No new connections from here on; the sockets are closed. May be called again. */
void acceptor_close(struct acceptor *a);
