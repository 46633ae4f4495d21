/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * UDP: each worker has a descriptor for every bound address, reads datagrams in batches,
 * executes the requests in them and answers each request with one message of as many
 * datagrams as it takes. Nothing survives a datagram: a request that is not complete in it
 * is dropped with it.
 *
 * A socket shares its worker with the connections on equal terms: what is large, and what is
 * left of a batch after a turn, waits in the deferred queue; a request without a token waits
 * for one in the limiter's queue. What waits is set aside with its source (net/flow.h), and the
 * datagrams of others behind it are served; those of that source follow it in order.
 */
#pragma once

#include "base/must.h"

struct worker;

/* Starts to serve the worker's sockets. False: no memory. */
must_check bool udp_start(struct worker *w);
/* The worker is draining: what has arrived is served. */
void udp_drain(struct worker *w);
must_check bool udp_is_drained(const struct worker *w);
/* Serves no more; what has been answered goes out as far as the sockets take it. */
void udp_stop(struct worker *w);
