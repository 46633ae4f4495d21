/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * With --sched=slice:T: a thread for each worker that does nothing but wake up on the worker's
 * CPU, at real-time priority, so that what runs there is put back and the kernel chooses anew:
 * the worker, as soon as it may, instead of at the next tick. place/nudge.h has the why and when.
 *
 * A nudger has its priority from the start, when the server may still give it, and no right beside
 * that. It sleeps without a timer while its worker does not wait; a worker that may run on several
 * CPUs, or shares its own with another worker, is not nudged. Where real-time priority is refused
 * there are none: nothing else is lost.
 *
 * Owner of struct nudgers: mc-upkeep, between nudgers_open and nudgers_close by main. Anybody
 * reads the counters.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/ctr.h"
#include "base/must.h"
#include "place/nudge.h"

struct nudgers;
struct pinner;

struct nudger {
    unsigned index;               /* of the worker */
    const struct nudgers *others; /* and itself */
    pid_t worker;                 /* its thread */
    int schedstat;                /* the worker's; -1: none */
    pthread_t thread;
    pid_t tid; /* the nudger's; once `is_known` was posted */
    sem_t is_known, go;
    bool is_started;
    _Atomic bool is_stopping;
    _Atomic bool is_at_work; /* then `policy` is the nudger's */
    struct nudge policy;
    ctr_t nudges;
    bool is_refused; /* the priority: there is no thread; known before they serve */
};

struct nudgers {
    unsigned count; /* 0: none are wanted */
    struct nudger *all;
};

/* When the workers have started, before they serve. False: no memory. */
must_check bool nudgers_open(struct nudgers *n, struct pinner *pinner, unsigned count);
/* Gives them their priority. Behind nudgers_open, by a thread that has the right to it, which they
 * have not. */
void nudgers_raise(struct nudgers *n);
/* Once a second. */
void nudgers_second(struct nudgers *n);
/* When nobody calls nudgers_second any more. Nothing happens if it was not opened. */
void nudgers_close(struct nudgers *n);

/* Any thread. */
uint64_t nudgers_nudges(const struct nudgers *n);
unsigned nudgers_refused(const struct nudgers *n);
