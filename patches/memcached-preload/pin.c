/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Binds each worker of a memcached to a CPU of its own. For LD_PRELOAD: a thread that is given a
 * name that begins with "mc-worker" is bound to the next CPU of those that the process may use, in
 * turn: one of each core first, then their siblings. Nothing else of the program changes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKER "mc-worker"

static hwloc_topology_t topology; /* NULL: it could not be read */
static hwloc_obj_t *units;        /* CPUs, in the order of workers */
static unsigned unit_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Of each core the first unit that may be used, then of each the second, until there are none. */
static void
order_units(unsigned most)
{
    for (unsigned nth = 0; unit_count < most; nth++) {
        unsigned before = unit_count;
        for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(
                                           topology, HWLOC_OBJ_CORE, core)) != NULL;) {
            hwloc_obj_t unit = hwloc_get_obj_inside_cpuset_by_type(topology, core->cpuset,
                                                                   HWLOC_OBJ_PU, nth);
            if (unit != NULL && unit_count < most) {
                units[unit_count++] = unit;
            }
        }
        if (unit_count == before) {
            return;
        }
    }
}

static void
read_topology(void)
{
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    if (allowed == NULL || hwloc_topology_init(&topology) != 0 ||
        hwloc_topology_load(topology) != 0 ||
        hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) != 0 ||
        hwloc_topology_restrict(topology, allowed, 0) != 0) {
        fprintf(stderr, "pin: workers are not bound: the topology could not be read\n");
        topology = NULL;
        return;
    }
    hwloc_bitmap_free(allowed);
    int most = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    units = most > 0 ? calloc((size_t)most, sizeof units[0]) : NULL;
    if (units != NULL) {
        order_units((unsigned)most);
    }
}

/* The only place that memcached's main thread, which starts the workers, comes by for each. */
int
pthread_setname_np(pthread_t thread, const char *name)
{
    static unsigned workers;
    static int (*real)(pthread_t, const char *);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_setname_np");
    }
    if (strncmp(name, WORKER, strlen(WORKER)) != 0) {
        return real(thread, name);
    }
    pthread_once(&once, read_topology);
    unsigned nth = __atomic_fetch_add(&workers, 1, __ATOMIC_RELAXED);
    if (unit_count > 0 &&
        hwloc_set_thread_cpubind(topology, thread, units[nth % unit_count]->cpuset, 0) !=
            0) {
        perror("pin: a worker is not bound");
    }
    return real(thread, name);
}
