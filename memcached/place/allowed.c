/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "place/allowed.h"

static void
give(struct allowed *a, const struct cpumask *mask)
{
    a->given = a->bound = *mask;
    if (cpumask_equals(mask, &a->cpuset)) {
        memset(&a->given, 0xff, sizeof a->given); /* more when the cpuset grows */
    }
}

void
allowed_init(struct allowed *a, const struct cpumask *cpuset, const struct cpumask *mask)
{
    a->cpuset = *cpuset;
    give(a, mask);
}

/* The kernel replaces a mask by the whole cpuset when nothing is left of it, in older versions
 * always. */
void
allowed_look(struct allowed *a, const struct cpumask *cpuset, const struct cpumask *mask)
{
    bool has_changed = !cpumask_equals(cpuset, &a->cpuset);
    struct cpumask cut = cpumask_common(&a->bound, cpuset);
    bool is_kernels =
        cpumask_equals(mask, &a->bound) ||
        (has_changed && (cpumask_equals(mask, &cut) || cpumask_equals(mask, cpuset)));
    a->cpuset = *cpuset;
    if (is_kernels) {
        a->bound = *mask;
    } else {
        give(a, mask);
    }
}

struct cpumask
allowed_cpus(const struct allowed *a)
{
    struct cpumask common = cpumask_common(&a->cpuset, &a->given);
    return cpumask_count(&common) > 0 ? common : a->cpuset;
}
