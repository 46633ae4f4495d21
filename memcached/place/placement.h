/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The front of all that places threads and memory: plans once the options are known, says what
 * could not be done, and looks after it while the server runs. Nothing of it is ever a reason
 * not to start. Main thread, but for placement_second.
 */
#pragma once

#include "place/membind.h"
#include "place/pinner.h"
#include "place/resctrl.h"
#include "place/scheduling.h"

struct placement_conf {
    unsigned workers;
    uint64_t items_mb;   /* memory for items */
    struct pin_spec pin; /* its list stays the caller's */
    struct membind_spec membind;
    struct prio_spec sched;
    struct resctrl_conf resctrl;
};

struct placement {
    struct placement_conf conf;
    struct pinner pinner;
    struct membind membind;
    pthread_mutexattr_t lock_attr;
    struct scheduling schedule;
    struct resctrl resctrl;
};

/* While the process has the rights that it was started with; */
void placement_init(struct placement *p, const struct placement_conf *conf);
/* and when it has given them up. */
must_check bool placement_reduce(struct placement *p);
/* In its session, before any other thread starts, and before the store has memory. False, with
 * a message: no memory. */
must_check bool placement_plan(struct placement *p);
void placement_fini(struct placement *p);
/* The workers have started, and do not serve yet. */
void placement_schedule(struct placement *p);
/* For the locks that workers share with other threads: where those run at a lower priority,
 * they get the worker's while it waits. NULL: the default. */
const pthread_mutexattr_t *placement_locks(const struct placement *p);
/* All threads have started. */
void placement_settle(struct placement *p);
/* To be called once a second, by one thread that is no worker. */
void placement_second(struct placement *p);
/* --pin-dry-run: prints the plan. Returns the exit status. */
int placement_print(const struct placement_conf *conf);
