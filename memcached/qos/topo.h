/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The CPUs that the process may use, and where each stands: package, last-level cache, core,
 * thread. topo.c is the only file that includes hwloc; without it nothing but the OS numbers
 * is known.
 *
 * CPUs are OS numbers, as in qos/pin.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "qos/pin.h"

#ifndef HAVE_HWLOC
#define HAVE_HWLOC 0
#endif

/* A set of OS numbers. */
struct topo_mask {
    bool has[PIN_CPUS_MAX];
};

/* A CPU that may be used. Ranks count allowed CPUs only, so that a mask which leaves out
 * the first thread of a core makes the second one that core's first. */
struct topo_cpu {
    struct pin_place place;
    int core_id; /* place.core, or a number of its own where cores are unknown */
    int kind;    /* of hybrid processors: the higher, the faster; else -1 */
    unsigned package_rank;
    unsigned llc_rank;     /* in its package */
    unsigned package_core; /* rank of its core in the package */
    unsigned llc_core;     /* rank of its core in the cache domain */
    unsigned thread;       /* rank in its core */
    unsigned sort_by[4];   /* the policy's key, most significant first */
};

/* The allowed CPUs in tree order: package, cache domain, core, thread. */
struct topo {
    struct topo_cpu *cpus;
    unsigned count;
    bool has_topology; /* false: nothing but the OS numbers is known */
};

/* Reads "0,2,4-7" into cpus, in the order given. NULL, or what is wrong (static storage). */
must_check const char *topo_parse_list(const char *text, int cpus[PIN_CPUS_MAX],
                                       unsigned *count);

/* The calling thread's affinity: what taskset left, cut by the kernel to the cpuset. */
must_check bool topo_read_affinity(struct topo_mask *mask, char *err, size_t err_len);

/* The CPUs of the mask, of which nothing more is known. False when memory is short. The
 * caller frees m->cpus, whatever is returned; so it does after topo_discover. */
must_check bool topo_from_mask(struct topo *m, const struct topo_mask *mask);

/* What hwloc knows. described: as in pin_plan_synthetic; NULL: this machine. mask NULL: all
 * CPUs. */
must_check bool topo_discover(struct topo *m, const char *described,
                              const struct topo_mask *mask, char *err, size_t err_len);

/* The CPU of that number, or NULL when it is not among them. */
const struct topo_cpu *topo_find(const struct topo *m, int os_number);

/* For qsort: package, cache domain, fast cores first, core, thread. */
int topo_tree_order(const void *a, const void *b);

/* Writes the sentence and returns false. */
__attribute__((format(printf, 3, 4))) bool topo_fail(char *err, size_t err_len,
                                                     const char *format, ...);
