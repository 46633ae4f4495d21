/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The CPUs that this process might use, as they are now, whatever it is bound to: its cpuset, less
 * what is off line. The kernel tells a thread when that tries to bind itself to everything; so the
 * thread that is bound is one that does nothing but sleep. It never runs where workers do, and
 * whoever asks stays where it is.
 *
 * Shared: cpuset_read under a lock of the caller's, the rest by one thread.
 */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/must.h"
#include "base/cpumask.h"

struct cpuset {
    pthread_t thread;
    pid_t
        tid; /* of the sleeper; 0: there is none, and who asks is bound itself for a moment */
    sem_t is_known, end;
};

/* Starts the sleeper. False, with errno: there is none. A zeroed struct has none either. */
must_check bool cpuset_open(struct cpuset *c);
void cpuset_close(struct cpuset *c);
/* 0, or the errno. All threads are bound afterwards to what they were before. */
must_check int cpuset_read(const struct cpuset *c, struct cpumask *m);
