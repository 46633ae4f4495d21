/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the control groups of a process say about its CPU time: the quota, in version 1
 * (cpu.cfs_quota_us) and 2 (cpu.max), here and in all groups above, and the real-time budget;
 * and about its memory: the limit (memory.limit_in_bytes, memory.max), here and above.
 * The cpuset needs no reading: the kernel cuts every affinity mask to it.
 *
 * `root` is put in front of every path: "" for this machine, a made-up tree for tests.
 */
#pragma once

#include <limits.h>

#include "base/must.h"

#define CGROUP_PATH_MAX 4096
#define CGROUP_SELF "self" /* this process; of another one its folder in /proc */

/* The group that sets a limit, this one or one above it: its own name, the last of its path; "/" where the
 * hierarchy begins; empty without a limit. */
struct cgroup_setter {
    char name[NAME_MAX + 1];
};

/* The tightest quota in thousandths of a CPU, rounded up; 0: none. `setter` may be NULL. */
unsigned cgroup_quota_milli(const char *root, const char *process,
                            struct cgroup_setter *setter);

/* The tightest limit on memory; 0: none. */
uint64_t cgroup_memory_bytes(const char *root, const char *process,
                             struct cgroup_setter *setter);

/* True when the process is in a group of its own for CPU time, so that autogroups do not
 * apply. */
bool cgroup_is_grouped(const char *root, const char *process);

/* True, with its path in `file`, when the group has a real-time budget and it is 0: the kernel
 * then refuses SCHED_FIFO and SCHED_RR (CONFIG_RT_GROUP_SCHED). */
bool cgroup_lacks_rt_budget(const char *root, const char *process, char *file,
                            size_t file_len);
