/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where threads say that they are ready and wait for the next order of the main thread, a
 * time to begin with it. Any thread.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "loadgen/drive/drive.h"

enum lthread_order {
    ORDER_READY,       /* prepare a run; connections not fit for one are made anew */
    ORDER_READY_FRESH, /* the same with all of them made anew */
    ORDER_RUN,         /* send for a window: after one of the two */
    ORDER_END,         /* end the thread */
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
