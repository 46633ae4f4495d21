/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A worker's thread: its start, the loop that decides what runs next, and its end.
 */
#pragma once

#include "base/must.h"

struct net_shared;
struct worker;

/* Starts the thread; pins it before it allocates anything. False with errno. */
must_check bool worker_start(struct worker *w, unsigned index, struct net_shared *shared);
/* After the threads of all have been joined: they may have given each other connections to the last. */
void worker_fini(struct worker *w);
