/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The CPUs that the process may use: its cpuset as it is now, cut to the mask that it was given,
 * inherited at the start or with taskset since. Pure.
 *
 * The law: the kernel does not say which of the two has changed a thread's mask. It cuts masks to
 * a new cpuset, or replaces them by the whole of it; so a mask that is none of these, of what the
 * main thread was bound to last, is one that was given.
 */
#pragma once

#include "base/cpumask.h"

struct allowed {
    struct cpumask cpuset; /* at the last look */
    struct cpumask
        given; /* a mask that is the whole cpuset restricts nothing: all CPUs */
    struct cpumask bound; /* what the main thread was bound to last */
};

/* The process has this cpuset and was started with this mask. */
void allowed_init(struct allowed *a, const struct cpumask *cpuset,
                  const struct cpumask *mask);
/* The same at a later time: mask is the main thread's. */
void allowed_look(struct allowed *a, const struct cpumask *cpuset,
                  const struct cpumask *mask);
/* The common CPUs of cpuset and given mask; the cpuset when there are none. */
struct cpumask allowed_cpus(const struct allowed *a);
