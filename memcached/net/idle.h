/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * idle_timeout: once a second a worker walks its connections and closes those from which
 * nothing has come for too long. It walks in pieces, so that a worker of many connections
 * serves requests in between. The same timer ends handshakes of TLS that take too long. The
 * worker's thread.
 */
#pragma once

#include "base/must.h"

struct worker;

/* Does nothing when no timeout is set. False: no descriptor. */
must_check bool idle_start(struct worker *w);
void idle_stop(struct worker *w);
