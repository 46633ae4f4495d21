/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * --sched for all workers: the right to it, its application, and nudges.
 *
 * The right to raise priorities (CAP_SYS_NICE) outlives the change of user that ends all others.
 * Rights belong to threads, and a new thread inherits its creator's. So main hands this one to
 * a thread that waits, before it starts any other; the thread schedules the workers, when they
 * exist, and ends.
 *
 * With slice:T each worker has a nudger: a thread at real-time priority that does nothing but
 * wake up on the worker's CPU, so that the kernel decides again which thread runs there
 * (place/nudge.h has the why and when). It sleeps without a timer while its worker does not wait;
 * a worker that may run on several CPUs, or shares its own with another worker, is not nudged.
 * Where real-time priority is refused there are none: nothing else is lost.
 *
 * Main, but for scheduling_second (mc-upkeep) and the counters (any thread).
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/ctr.h"
#include "place/nudge.h"
#include "place/prio.h"

struct scheduling;

struct nudger {
    struct scheduling *schedule;
    pid_t worker;  /* its thread */
    int schedstat; /* the worker's; -1: none */
    pthread_t thread;
    sem_t go;
    bool is_refused; /* no thread at that priority; known before the workers serve */
    _Atomic bool is_stopping;
    _Atomic bool is_at_work; /* then `policy` is the nudger's, else mc-upkeep's */
    struct nudge policy;
    ctr_t nudges;
};

struct scheduling {
    struct prio_spec spec;
    bool is_kept; /* the process was root and is another user now */
    bool is_lent; /* the thread waits */
    pthread_t thread;
    sem_t go, is_known;
    const pid_t *tids; /* of the workers, while they are scheduled */
    unsigned count;
    unsigned errors; /* workers that the kernel refused it to */
    int error;       /* errno of the last of them; of none: no memory for nudgers */
    unsigned nudger_count;
    struct nudger *nudgers;
};

/* As root, before the change of user. */
void scheduling_init(struct scheduling *s, const struct prio_spec *spec);
/* After it: of what root had, this one right is left, or none. False, with errno: the kernel
 * refuses to take the others, and the process must not go on. */
must_check bool scheduling_reduce(struct scheduling *s);
/* Before other threads start: the caller has no rights any more. False: no thread, and no
 * right is left. */
must_check bool scheduling_lend(struct scheduling *s);
/* The workers have started, and do not serve yet. Once; `errors` and `error` say what came of
 * it. */
void scheduling_workers(struct scheduling *s, const pid_t *tids, unsigned count);
/* Once a second. */
void scheduling_second(struct scheduling *s);
/* When scheduling_second is not called any more; also when the workers were never scheduled. */
void scheduling_fini(struct scheduling *s);

uint64_t scheduling_nudges(const struct scheduling *s);
unsigned scheduling_nudgers_refused(const struct scheduling *s);
