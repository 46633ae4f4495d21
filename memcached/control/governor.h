/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Keeps the process at its share of CPU time: ten times a second the main loop looks at what
 * it used (qos/cpushare.h) and sets a ceiling to the limit on all requests. Without a share
 * nothing ticks.
 */
#pragma once

#include <event2/event_struct.h>
#include <pthread.h>

#include "base/must.h"
#include "qos/cpushare.h"

struct event_base;
struct net_shared;

/* By its functions only. */
struct governor {
    struct net_shared *shared;
    int fd; /* eventfd: the share has changed */
    struct event tick, change;
    bool ticks;
    pthread_mutex_t lock; /* the rest, and the ceiling of the limiter */
    struct cpushare share;
};

/* False with errno. */
must_check bool governor_init(struct governor *g, struct net_shared *shared,
                              unsigned percent);
void governor_fini(struct governor *g);

/* Main thread: serves the events of base until stopped. False: no memory. */
must_check bool governor_start(struct governor *g, struct event_base *base);
void governor_stop(struct governor *g);

/* Any thread. percent: of one CPU; 0: no share. */
void governor_set(struct governor *g, unsigned percent);
/* The share, and the rate that keeps it; 0: none, and not known. */
unsigned governor_get(struct governor *g, uint64_t *rate);
