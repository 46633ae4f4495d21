/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * CPUs by the numbers of the operating system: where one stands, sets of them, and the
 * affinity of threads.
 */
#pragma once

#include <sched.h>
#include <sys/types.h>

#include "base/must.h"

#define CPUMASK_CPUS 4096

/* Where a CPU stands. Numbers are -1 where unknown. */
struct cpu_place {
    int cpu;
    int package; /* hwloc's logical numbers */
    int llc;     /* last-level cache domain */
    int numa;
    int core;
};

/* A value: all zero is empty, `=` copies. */
struct cpumask {
    cpu_set_t sets[CPUMASK_CPUS / CPU_SETSIZE];
};

static inline bool
cpumask_has(const struct cpumask *m, unsigned cpu)
{
    return CPU_ISSET_S(cpu, sizeof m->sets, m->sets) != 0;
}

static inline void
cpumask_add(struct cpumask *m, unsigned cpu)
{
    CPU_SET_S(cpu, sizeof m->sets, m->sets);
}

static inline void
cpumask_remove(struct cpumask *m, unsigned cpu)
{
    CPU_CLR_S(cpu, sizeof m->sets, m->sets);
}

static inline unsigned
cpumask_count(const struct cpumask *m)
{
    return (unsigned)CPU_COUNT_S(sizeof m->sets, m->sets);
}

static inline bool
cpumask_equals(const struct cpumask *a, const struct cpumask *b)
{
    return CPU_EQUAL_S(sizeof a->sets, a->sets, b->sets) != 0;
}

/* What is in both. */
struct cpumask cpumask_common(const struct cpumask *a, const struct cpumask *b);
/* "0-3,8"; cut short with "..." when there is no room. */
void cpumask_describe(const struct cpumask *m, char *dst, size_t cap);

/* Of a thread of this process; tid 0: of the calling one. 0, or the errno. The kernel has cut
 * the mask to the cpuset and to the CPUs that are on line. */
must_check int cpumask_read(pid_t tid, struct cpumask *m);
/* The CPUs that the calling thread could be bound to, whatever it is bound to: its cpuset, less
 * what is off line. The kernel tells a thread that tries to bind itself to everything, so it is
 * free for a moment; it stays on its CPU unless the kernel preempts it just then. 0, or the
 * errno. */
must_check int cpumask_read_cpuset(struct cpumask *m);
/* Binds the thread and reads the binding back. 0, or the errno; ENOTSUP: the call had no
 * effect, as in some sandboxes. */
must_check int cpumask_bind(pid_t tid, const struct cpumask *m);
