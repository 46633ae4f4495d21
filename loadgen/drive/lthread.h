/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One sending thread: its place and priority, its connections, loading, the run. The main
 * thread creates it, meets it at the gate when it is ready, gives it orders there, and joins
 * it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "loadgen/drive/drive.h"
#include "loadgen/drive/load.h"
#include "loadgen/wire/lset.h"
#include "loadgen/measure/result.h"
#include "loadgen/measure/tally.h"
#include "place/pin.h"

#define LTHREAD_ERR_MAX 512

/* Where threads say that they are ready and wait for the time to begin. */
enum gate_order {
    GATE_READY,       /* prepare a run; connections not fit for one are made anew */
    GATE_READY_FRESH, /* the same with all of them made anew */
    GATE_RUN,         /* send for a window: after one of the two */
    GATE_END,         /* end the thread */
};

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned ready, failed; /* threads, of the last order; under mutex, as all below */
    unsigned round;         /* orders given: the first thing of a thread is round 0 */
    enum gate_order order;
    struct drive_window window; /* RUN */
};

void gate_init(struct gate *g);
void gate_fini(struct gate *g);
/* Gives the order to all threads; they report ready or failed, but for END. */
void gate_give(struct gate *g, enum gate_order order, const struct drive_window *window);
/* Waits until `threads` have reported, or for `wait`: true, false. */
bool gate_await(struct gate *g, unsigned threads, nsec_t wait, bool *has_failed);

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
    struct gate *gate;
    pthread_t id;
    bool is_started;
    /* Of the last order; the main thread may read while a run goes on, and all of it when
     * the thread has reported. */
    struct tally tally;
    struct evenness_log evenness; /* by its thread; read by the main one between runs */
    struct samples samples;       /* likewise */
    struct cost cost;
    bool is_short;             /* its trace ended before the window */
    char err[LTHREAD_ERR_MAX]; /* valid once it has failed */
    ctr_t loaded;              /* records, of the first order */
};

/* False when memory or threads are short. `t` and what conf points to live until joined. */
must_check bool lthread_start(struct lthread *t, const struct lthread_conf *conf,
                              struct gate *gate);
/* Points `result` at the samples of all. False when memory is short. */
must_check bool lthread_samples(const struct lthread *threads, unsigned count,
                                struct result *result);
/* Also after a failed start. */
void lthread_join(struct lthread *t);
