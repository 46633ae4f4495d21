/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The CPUs of a machine, and where each stands: package, last-level cache, core, thread; and
 * its memory nodes. topo.c is the only file that includes hwloc; without it nothing but the OS
 * numbers is known.
 *
 * CPUs are OS numbers, as in place/pin.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"
#include "base/cpumask.h"
#include "place/pin.h"

#ifndef HAVE_HWLOC
#define HAVE_HWLOC 0
#endif

/* A CPU that may be used. Ranks count those of its struct topo only, so that a mask which
 * leaves out the first thread of a core makes the second one that core's first. */
struct topo_cpu {
    struct cpu_place place;
    int core_id; /* place.core, or a number of its own where cores are unknown */
    int kind;    /* of hybrid processors: the higher, the faster; else -1 */
    unsigned package_rank;
    unsigned llc_rank;     /* in its package */
    unsigned package_core; /* rank of its core in the package */
    unsigned llc_core;     /* rank of its core in the cache domain */
    unsigned thread;       /* rank in its core */
    unsigned sort_by[4];   /* the policy's key, most significant first */
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

/* What hwloc knows, also of CPUs that the process may not use. described: as in
 * pin_plan_synthetic; NULL: this machine. */
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

/* ---- memory nodes ---------------------------------------------------------------------- */

enum topo_memory {
    TOPO_MEMORY_INTERLEAVE, /* page by page over all nodes */
    TOPO_MEMORY_LOCAL,      /* the node of who touches a page first */
    TOPO_MEMORY_NODE,       /* one node, others when it is full */
};

/* This machine's memory, loaded. Any thread may bind with it. */
struct topo_nodes;

/* NULL with a sentence in err. `node`: OS number, of TOPO_MEMORY_NODE. */
must_check struct topo_nodes *topo_nodes_open(enum topo_memory policy, unsigned node,
                                              char *err, size_t err_len);
void topo_nodes_close(struct topo_nodes **nodes);
unsigned topo_nodes_count(const struct topo_nodes *nodes);
/* 0, or the errno. */
must_check int topo_nodes_bind(struct topo_nodes *nodes, void *area, size_t bytes);

/* Writes the sentence and returns false. */
__attribute__((format(printf, 3, 4))) bool topo_fail(char *err, size_t err_len,
                                                     const char *format, ...);
