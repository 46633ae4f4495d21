/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One sending thread: its place and priority, its connections, loading, the run. The main
 * thread creates it, meets it at the gate when it is ready, and joins it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "loadgen/drive/drive.h"
#include "loadgen/wire/lset.h"
#include "loadgen/measure/tally.h"
#include "qos/pin.h"

#define LTHREAD_ERR_MAX 512

/* Where threads say that they are ready and wait for the time to begin. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned ready, failed; /* threads; under mutex, as all below */
    bool is_open;
    bool is_cancelled; /* open, but there will be no run */
    struct drive_window window;
};

void gate_init(struct gate *g);
void gate_fini(struct gate *g);

struct lthread_conf {
    unsigned index, threads;
    struct lset_conf set;
    struct drive_conf drive;
    bool loads;
    const struct pin_plan *pin; /* NULL: not pinned */
    int fifo_priority;          /* 0: ordinary */
};

struct lthread {
    struct lthread_conf conf;
    struct gate *gate;
    pthread_t id;
    bool is_started;
    struct tally tally;
    struct cost cost;          /* valid after join */
    char err[LTHREAD_ERR_MAX]; /* valid once it has failed */
};

/* False when memory or threads are short. `t` and what conf points to live until joined. */
must_check bool lthread_start(struct lthread *t, const struct lthread_conf *conf,
                              struct gate *gate);
/* Also after a failed start. */
void lthread_join(struct lthread *t);
