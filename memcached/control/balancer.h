/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * --balance: ten times a second the main thread's loop looks at what the workers do and asks
 * qos/balance.h whether connections should move. Main thread.
 */
#pragma once

#include <event2/event_struct.h>

#include "base/must.h"
#include "qos/balance.h"

struct event_base;
struct net_shared;

struct balancer {
    struct net_shared *shared; /* NULL: not started */
    struct balance policy;
    struct balance_sample *samples;
    int *schedstats; /* descriptors, one for each worker; -1: the kernel does not tell */
    bool has_run_times; /* it does of all, and they sleep when they have nothing to do */
    int cpustat;        /* descriptor; -1: likewise */
    char *text;         /* what it says */
    uint64_t tick_ns;   /* its unit */
    struct event tick;
};

/* The workers run. False: no memory. */
must_check bool balancer_start(struct balancer *b, struct net_shared *shared,
                               struct event_base *base);
/* Before the base goes. Nothing happens if it was not started. */
void balancer_stop(struct balancer *b);

/* Any thread: moves connections now, whether it is worth it or not. */
void balancer_rebalance(struct net_shared *shared);
