/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the kernel tells of its CPUs in /proc/stat: how long each has worked. Pure.
 */
#pragma once

#include "base/must.h"

#define CPUSTAT_PATH "/proc/stat"

/* In the file's ticks. */
struct cpustat {
    uint64_t
        busy; /* it has run threads: interrupts do not count, they are as much the worker's
                      * own as other threads' */
    uint64_t stolen; /* the host kept it from that */
    uint64_t all;
};

/* Of a CPU, or, -1, of all together. False: the text does not tell. */
must_check bool cpustat_parse(const char *text, int cpu, struct cpustat *stat);
