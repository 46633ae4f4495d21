/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * For another memcached: binds each worker to a CPU of its own, and gives it the connections whose
 * packets that CPU receives. Preloaded (LD_PRELOAD) or linked with the program, whose own code
 * stays as it is:
 *
 * - Pinning: a thread that is given a name that begins with "mc-worker" is bound to the next CPU of
 *   those that the process may use, in turn: one of each core first, then their siblings.
 * - Steering, with -N as large as -t: memcached then chooses a connection's worker by the number
 *   of the queue that received it (SO_INCOMING_NAPI_ID), and gives each number a worker as it
 *   comes. It is told the number of a CPU in place of that of a queue, by SO_INCOMING_CPU. Which
 *   worker a number got is seen when a worker registers its first connection; it is bound to that
 *   CPU then, and the worker that was there goes where it came from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hwloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define WORKER "mc-worker"
#define WORKERS 256       /* more are bound, but get no connections by CPU */
#define DESCRIPTORS 65536 /* the same */

static hwloc_topology_t topology; /* NULL: it could not be read */
static hwloc_obj_t *units;        /* CPUs, in the order of workers */
static unsigned unit_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for what follows */
static struct worker {
    pthread_t thread;
    unsigned unit;   /* the CPU it is bound to, as an index into units */
    bool is_settled; /* it has connections of that CPU */
} workers[WORKERS];
static unsigned worker_count;
static unsigned short cpu_of[DESCRIPTORS]; /* as memcached was told last; 0: nothing */

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
        fprintf(stderr, "workers: not bound: the topology could not be read\n");
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

static void
bind_to(pthread_t thread, unsigned unit)
{
    if (hwloc_set_thread_cpubind(topology, thread, units[unit]->cpuset, 0) != 0) {
        perror("workers: one is not bound");
    }
}

/* memcached's main thread calls it once for each worker that it starts. */
int
pthread_setname_np(pthread_t thread, const char *name)
{
    static int (*real)(pthread_t, const char *);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_setname_np");
    }
    if (strncmp(name, WORKER, strlen(WORKER)) != 0) {
        return real(thread, name);
    }
    pthread_once(&once, read_topology);
    if (unit_count > 0) {
        pthread_mutex_lock(&lock);
        unsigned unit = worker_count % unit_count;
        if (worker_count < WORKERS) {
            workers[worker_count] = (struct worker){.thread = thread, .unit = unit};
        }
        worker_count++;
        bind_to(thread, unit);
        pthread_mutex_unlock(&lock);
    }
    return real(thread, name);
}

static unsigned
known_workers(void)
{
    return worker_count < WORKERS ? worker_count : WORKERS;
}

/* The number of the CPU, from 1, whose worker is to have this connection; 0: any. Where there are
   fewer workers than CPUs, several CPUs share one: those of a core if there is one for each core. */
static unsigned
home_of(int fd)
{
    int cpu = -1;
    int is_listening = 1;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening,
                   &(socklen_t){sizeof(int)}) != 0 ||
        is_listening ||
        getsockopt(fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &(socklen_t){sizeof(int)}) !=
            0) {
        return 0;
    }
    for (unsigned i = 0; i < unit_count; i++) {
        if (units[i]->os_index == (unsigned)cpu) {
            return 1 + i % known_workers();
        }
    }
    return 0;
}

int
getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    static int (*real)(int, int, int, void *, socklen_t *);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
    }
    int result = real(fd, level, name, value, len);
    if (level != SOL_SOCKET || name != SO_INCOMING_NAPI_ID || result != 0 ||
        *len != sizeof(int) || fd < 0 || fd >= DESCRIPTORS) {
        return result;
    }
    pthread_mutex_lock(&lock);
    unsigned home = worker_count > 0 ? home_of(fd) : 0;
    cpu_of[fd] = (unsigned short)home;
    pthread_mutex_unlock(&lock);
    if (home != 0) {
        *(unsigned *)value = home;
    }
    return result;
}

/* The calling worker has got its first connection, which is of the CPU `unit`. */
static void
settle(struct worker *self, unsigned unit)
{
    for (unsigned i = 0; i < known_workers() && self->unit != unit; i++) {
        struct worker *other = &workers[i];
        if (other->unit == unit && !other->is_settled) {
            other->unit = self->unit;
            bind_to(other->thread, other->unit);
            self->unit = unit;
            bind_to(self->thread, self->unit);
        }
    }
    self->is_settled = true;
}

int
epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    static int (*real)(int, int, int, struct epoll_event *);
    static __thread bool is_known; /* this thread is settled, or no worker */
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
    }
    if (!is_known && op == EPOLL_CTL_ADD && fd >= 0 && fd < DESCRIPTORS) {
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < known_workers() && cpu_of[fd] != 0; i++) {
            if (pthread_equal(workers[i].thread, pthread_self())) {
                settle(&workers[i], cpu_of[fd] - 1U);
                is_known = true;
            }
        }
        pthread_mutex_unlock(&lock);
    }
    return real(epoll, op, fd, event);
}
