/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One sending thread: its place and priority, its connections, loading, the run. The main
 * thread creates it, waits until it is ready, gives it orders, and joins
 * it.
 */
#pragma once

#include <pthread.h>

#include "base/clock.h"
#include "loadgen/drive/drive.h"
#include "loadgen/drive/event_loop.h"
#include "loadgen/drive/load.h"
#include "loadgen/measure/counters.h"
#include "loadgen/measure/result.h"
#include "loadgen/wire/lset.h"
#include "place/pin.h"

/* ---- rendezvous -------------------------------------------------------------------- */

/* Where threads say that they are ready and wait for the next order of the main thread, a
 * time to begin with it. Any thread. */
enum lthread_order {
    ORDER_RENEW,     /* connections not fit for a run are made anew */
    ORDER_RENEW_ALL, /* the same for all */
    ORDER_READY,     /* prepare a run */
    ORDER_RUN,       /* send for a window: after one of the two */
    ORDER_END,       /* end the thread */
};

struct rendezvous {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned ready, failed; /* threads, of the last order; under mutex, as all below */
    unsigned round;         /* orders given: the first thing of a thread is round 0 */
    enum lthread_order order;
    struct drive_window window; /* RUN */
};

void rendezvous_init(struct rendezvous *v);
void rendezvous_fini(struct rendezvous *v);
/* Gives the order to all threads; they report ready or failed, but for END. */
void rendezvous_give(struct rendezvous *v, enum lthread_order order,
                     const struct drive_window *window);
/* Waits until `threads` have reported, or for `wait`: true, false. */
bool rendezvous_await(struct rendezvous *v, unsigned threads, nsec_t wait,
                      bool *has_failed);

/* A thread's: it has done what it was ordered, or cannot. */
void rendezvous_report(struct rendezvous *v, bool is_ready);
/* The order of that round, waited for. */
enum lthread_order rendezvous_take(struct rendezvous *v, unsigned round,
                                   struct drive_window *window);

/* ---- lthread ----------------------------------------------------------------------- */

#define LTHREAD_ERR_MAX 512

struct lthread_conf {
    unsigned index; /* of all threads of this process, for its place */
    struct lset_conf set;
    unsigned first_server;   /* the first of the set's, among all of the run */
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
    uint64_t inserted;         /* keys, in all runs */
    bool is_short;             /* its trace ended before the window */
    nsec_t ended_at;           /* end of its window, which may have been cut short */
    char err[LTHREAD_ERR_MAX]; /* valid once it has failed */
    ctr_t loaded;              /* records, of the first order */
};

/* False when threads are short. `t` and what conf points to live until joined. */
must_check bool lthread_start(struct lthread *t, const struct lthread_conf *conf,
                              struct rendezvous *orders);
/* Points `result` at the samples of all. */
void lthread_samples(const struct lthread *threads, unsigned count,
                     struct result *result);
/* Also after a failed start. */
void lthread_join(struct lthread *t);
