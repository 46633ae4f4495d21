/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Main's part of placing threads and memory: plans once the options are known, says what
 * could not be done, and looks after it while the server runs. Nothing of it is ever a reason
 * not to start.
 */
#pragma once

#include "place/membind.h"
#include "place/nudger.h"
#include "place/pinner.h"
#include "place/resctrl.h"
#include "place/rights.h"
#include "settings.h"

struct placement {
    const struct settings *settings;
    struct pinner pinner;
    struct membind membind;
    pthread_mutexattr_t lock_attr;
    struct rights rights;
    struct resctrl resctrl;
    struct nudgers nudgers; /* with --sched=slice:T, where it was not refused */
    unsigned prio_errors;   /* workers that the kernel refused --sched to */
};

/* While the process has the rights that it was started with; */
void placement_init(struct placement *p, const struct settings *s);
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
/* To be called once a second, by the thread in the background. */
void placement_second(struct placement *p);
/* --pin-dry-run: prints the plan. Returns the exit status. */
int placement_print(const struct settings *s);
