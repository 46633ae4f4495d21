/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the kernel tells of its CPUs in /proc/stat: how long each has worked. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

#define CPUSTAT_PATH "/proc/stat"

/* The time that the CPU has run threads, or that the host kept it from that, in the
 * file's ticks: interrupts do not count, they are as much the worker's own as other
 * threads'. False: the text does not tell. */
must_check bool cpustat_parse(const char *text, int cpu, uint64_t *ticks);
