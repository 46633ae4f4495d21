/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/cpumask.h"

#include <errno.h>
#include <unistd.h>

struct cpumask
cpumask_common(const struct cpumask *a, const struct cpumask *b)
{
    struct cpumask common;
    CPU_AND_S(sizeof common.sets, common.sets, a->sets, b->sets);
    return common;
}

void
cpumask_describe(const struct cpumask *m, char *dst, size_t cap)
{
    static const char cut[] = "...";
    size_t len = 0;
    must(cap >= sizeof cut);
    dst[0] = '\0';
    for (unsigned first = 0; first < CPUMASK_CPUS; first++) {
        if (!cpumask_has(m, first)) {
            continue;
        }
        unsigned last = first;
        while (last + 1 < CPUMASK_CPUS && cpumask_has(m, last + 1)) {
            last++;
        }
        char piece[32];
        const char *comma = len > 0 ? "," : "";
        int n = last > first
                    ? snprintf(piece, sizeof piece, "%s%u-%u", comma, first, last)
                    : snprintf(piece, sizeof piece, "%s%u", comma, first);
        if (len + (size_t)n + sizeof cut > cap) {
            memcpy(dst + len, cut, sizeof cut);
            return;
        }
        memcpy(dst + len, piece, (size_t)n + 1);
        len += (size_t)n;
        first = last;
    }
}

int
cpumask_read(pid_t tid, struct cpumask *m)
{
    *m = (struct cpumask){0};
    return sched_getaffinity(tid, sizeof m->sets, m->sets) == 0 ? 0 : errno;
}

int
cpumask_read_cpuset(struct cpumask *m)
{
    struct cpumask before, all;
    pid_t self = gettid();
    int error = cpumask_read(self, &before);
    if (error != 0) {
        return error;
    }
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(self, sizeof all.sets, all.sets) != 0) {
        return errno;
    }
    error = cpumask_read(self, m);
    /* Fails when the cpuset has lost all of them meanwhile: then the thread may stay free. */
    (void)!sched_setaffinity(self, sizeof before.sets, before.sets);
    return error;
}

int
cpumask_bind(pid_t tid, const struct cpumask *m)
{
    struct cpumask now;
    if (sched_setaffinity(tid, sizeof m->sets, m->sets) != 0) {
        return errno;
    }
    int error = cpumask_read(tid, &now);
    return error == 0 && !cpumask_equals(&now, m) ? ENOTSUP : error;
}
