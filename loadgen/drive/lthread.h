/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One sending thread: its place and priority, its connections, loading, the run. The main
 * thread creates it, waits until it is ready, gives it orders (rendezvous.h), and joins
 * it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "loadgen/drive/event_loop.h"
#include "loadgen/drive/load.h"
#include "loadgen/drive/rendezvous.h"
#include "loadgen/wire/lset.h"
#include "loadgen/measure/result.h"
#include "loadgen/measure/counters.h"
#include "place/pin.h"

#define LTHREAD_ERR_MAX 512

struct lthread_conf {
    unsigned index; /* of all threads of this process, for its place */
    struct lset_conf set;
    struct drive_conf drive; /* the main thread may change it before READY */
    bool loads;
    double sample; /* share of requests whose latencies are kept one by one; 0: none */
    struct load_slice slice;
    const struct pin_plan *pin; /* NULL: not pinned */
    int fifo_priority;          /* 0: ordinary */
};

struct lthread {
    struct lthread_conf conf;
    struct rendezvous *orders;
    pthread_t id;
    bool is_started;
    /* Of the last order; the main thread may read while a run goes on, and all of it when
     * the thread has reported. */
    struct counters counters;
    struct evenness_log evenness; /* by its thread; read by the main one between runs */
    struct samples samples;       /* likewise */
    struct cost cost;
    bool is_short;             /* its trace ended before the window */
    char err[LTHREAD_ERR_MAX]; /* valid once it has failed */
    ctr_t loaded;              /* records, of the first order */
};

/* False when memory or threads are short. `t` and what conf points to live until joined. */
must_check bool lthread_start(struct lthread *t, const struct lthread_conf *conf,
                              struct rendezvous *orders);
/* Points `result` at the samples of all. False when memory is short. */
must_check bool lthread_samples(const struct lthread *threads, unsigned count,
                                struct result *result);
/* Also after a failed start. */
void lthread_join(struct lthread *t);
