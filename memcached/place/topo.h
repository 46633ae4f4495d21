/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The CPUs of a machine, and where each stands: package, last-level cache, core, thread.
 * topo.c is the only file that includes hwloc; without it nothing but the OS numbers is known.
 *
 * CPUs are OS numbers, as in place/pin.h.
 */
#pragma once

#include "base/must.h"
#include "base/cpumask.h"
#include "place/pin.h"

#ifndef HAVE_HWLOC
#define HAVE_HWLOC 0
#endif

/* Ranks count the CPUs of their struct topo only, so that a mask which leaves out the first
 * thread of a core makes the second one that core's first. */
enum topo_rank {
    TOPO_PACKAGE,
    TOPO_LLC,          /* in its package */
    TOPO_PACKAGE_CORE, /* of its core in the package */
    TOPO_LLC_CORE,     /* of its core in the cache domain */
    TOPO_THREAD,       /* in its core */
    TOPO_RANKS
};

/* A CPU that may be used. */
struct topo_cpu {
    struct cpu_place place;
    int core_id; /* place.core, or a number of its own where cores are unknown */
    int kind;    /* of hybrid processors: the higher, the faster; else -1 */
    unsigned rank[TOPO_RANKS];
};

/* CPUs in tree order: package, cache domain, core, thread. */
struct topo {
    struct topo_cpu *cpus;
    unsigned count;
    bool has_topology; /* false: nothing but the OS numbers is known */
};

/* Reads "0,2,4-7" into cpus, in the order given. NULL, or what is wrong (static storage). */
must_check const char *topo_parse_list(const char *text, int cpus[CPUMASK_CPUS],
                                       unsigned *count);

/* The CPUs of the mask, of which nothing more is known. False when memory is short. The
 * caller ends all three with topo_fini, whatever is returned. */
must_check bool topo_from_mask(struct topo *m, const struct cpumask *mask);

/* What hwloc knows, also of CPUs that the process may not use. described, for tests: hwloc's
 * synthetic notation or the path of an XML file of its own; NULL: this machine. */
must_check bool topo_discover(struct topo *m, const char *described, char *err,
                              size_t err_len);

/* Those of `all` that are in the mask. False when memory is short. */
must_check bool topo_select(struct topo *m, const struct topo *all,
                            const struct cpumask *mask);
void topo_fini(struct topo *m);
/* Where all of them stand: an array of *count, the caller's to free. NULL: no memory. */
must_check struct cpu_place *topo_places(const struct topo *m, unsigned *count);

/* The CPU of that number, or NULL when it is not among them. */
const struct topo_cpu *topo_find(const struct topo *m, int os_number);

/* For qsort: package, cache domain, fast cores first, core, thread. */
int topo_tree_order(const void *a, const void *b);
