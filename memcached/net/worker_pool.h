/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The workers together: all are started, none serves before all can, and all are ended. The
 * main thread; the semaphores are how the workers answer it.
 */
#pragma once

#include "base/must.h"

struct net_shared;
struct worker_pool;

void worker_pool_init(struct worker_pool *c);
void worker_pool_fini(struct worker_pool *c);

/* Memory for shared->worker_count of them: shared->workers, for the caller to free when
 * its counters are not read any more. False: there is none. */
must_check bool worker_pool_create(struct net_shared *shared);
/* Starts them, and waits until those that were started are ready. 0, or the errno for which the
 * rest was not. */
must_check int worker_pool_start(struct net_shared *shared);
/* Those that were started serve from here on. False when one of them cannot. */
must_check bool worker_pool_go(struct net_shared *shared);
/* Requests that have been accepted are answered; clients that do not take their replies in
 * time are left. Ends those that were started, and frees all. */
void worker_pool_stop(struct net_shared *shared);
