/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Groups of listening sockets on one address, one for each worker, among which the kernel
 * chooses. How it does is tried out at the start: from 4.6 to 6.1 SO_INCOMING_CPU is ignored in
 * groups. Main thread, before the workers start, but for reuseport_move.
 *
 * cpus[0..count): the workers' CPUs by OS number, -1: not pinned. They may change meanwhile.
 */
#pragma once

#include <stdatomic.h>

#include "base/must.h"

enum reuseport_kind {
    REUSEPORT_NONE,
    REUSEPORT_CPU,   /* each listener says which CPU it is for */
    REUSEPORT_TABLE, /* a program of the group has a table of the CPUs */
    REUSEPORT_HASH,  /* workers that are not pinned: by the connection's hash */
};

/* What works here, found by connections to itself from the workers' CPUs; moves the calling
 * thread about meanwhile. Says so in the log when it is not REUSEPORT_CPU. */
enum reuseport_kind reuseport_choose(const _Atomic int *cpus, unsigned count);
/* One kind alone. */
must_check bool reuseport_works(const _Atomic int *cpus, unsigned count,
                                enum reuseport_kind kind);
const char *reuseport_kind_name(enum reuseport_kind kind);

/* fd is bound and will listen for the worker on that CPU; the sockets of a group must come to
 * listen in the order of the workers. False with errno. */
must_check bool reuseport_join(int fd, enum reuseport_kind kind, int cpu);
/* All sockets of fd's group listen. False with errno. */
must_check bool reuseport_seal(int fd, enum reuseport_kind kind, const _Atomic int *cpus,
                               unsigned count);
/* The worker, whose listening socket fd is, has another CPU now. False with errno. */
must_check bool reuseport_move(int fd, enum reuseport_kind kind, const _Atomic int *cpus,
                               unsigned count, unsigned worker);
