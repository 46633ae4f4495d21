/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Keeps the threads of the server where the pin plan has them: workers on their CPUs, all
 * other threads of the process on what is left.
 *
 * Drift repair: the kernel moves a thread for good when its CPU leaves the cpuset or goes off
 * line, and gives no notice. So once a second masks are compared with the plan: a worker that was
 * moved alone is moved back; when the allowed CPUs (place/allowed.h) have changed, all are
 * planned again.
 *
 * Shared: everything is under the lock, which is never held together with another one, except
 * the workers' CPUs, which any thread may read.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "place/allowed.h"
#include "place/pin.h"
#include "place/topo.h"

struct pinner_worker {
    pid_t tid;                  /* 0: has not started */
    int error;                  /* errno of the last binding; 0: bound, or not asked */
    uint64_t drifts;            /* times that it was found where it should not be */
    uint64_t migrations_before; /* what the kernel had counted when it was bound first */
    _Atomic int cpu;            /* OS number, -1: anywhere */
};

struct pinner {
    pthread_mutex_t lock;
    const struct pin_spec *spec;
    unsigned count; /* workers */
    struct pinner_worker *workers;
    struct topo all; /* read when a plan is made for the first time */
    struct allowed allowed;
    struct cpumask planned; /* the allowed CPUs that the plan was made for */
    struct pin_plan plan;
    char why[PIN_LIST_LEN]; /* there is no plan; `plan` is "none" then. Empty: there is */
    uint64_t replans;
    unsigned background_errors; /* at the last attempt */
};

/* What became of it; a copy. */
struct pinner_summary {
    enum pin_policy policy; /* in force */
    bool is_oversubscribed;
    unsigned allowed;
    char layout[PIN_LAYOUT_LEN];
    char allowed_list[PIN_LIST_LEN];
    char background_list[PIN_LIST_LEN]; /* empty: the other threads are free */
    uint64_t replans;
    uint64_t errors; /* workers and other threads that could not be bound, and no plan */
};

struct pinner_seat {
    struct cpu_place place;
    pid_t tid;
    int error;
    uint64_t drifts, migrations_before;
};

/* Makes the first plan, in the main thread before any other has started. `spec` must live as
 * long. Without a plan (`why`) no worker is pinned. False, with errno: no memory, or the
 * own affinity cannot be read. `lock_attr`: of its lock, NULL: the default. */
must_check bool pinner_init(struct pinner *p, const struct pin_spec *spec,
                            unsigned workers, const pthread_mutexattr_t *lock_attr);
void pinner_fini(struct pinner *p);

/* The calling thread is worker i: binds it. 0, or the errno. */
must_check int pinner_join(struct pinner *p, unsigned i);
/* All threads have started: binds those that are no workers. */
void pinner_settle(struct pinner *p);
/* To be called once a second, not by a worker. True: it had to plan again, and `line` (when
 * there is room) says why. */
must_check bool pinner_check(struct pinner *p, char *line, size_t line_len);
/* Plans and binds again, whether need be or not. */
void pinner_repin(struct pinner *p);

/* Any thread, without the lock. */
static inline int
pinner_cpu(const struct pinner *p, unsigned i)
{
    return atomic_load_explicit(&p->workers[i].cpu, memory_order_relaxed);
}

void pinner_summary(struct pinner *p, struct pinner_summary *s);
void pinner_seat(struct pinner *p, unsigned i, struct pinner_seat *seat);
