/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * CPU time that a hypervisor gave to others while this machine wanted it, as /proc/stat
 * counts it, in ticks of some CPUs.
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"

struct steal {
    uint64_t stolen, all; /* ticks */
};

/* Of the CPUs of `set` in the text of /proc/stat. Pure. False when it has none of them. */
must_check bool steal_parse(struct steal *s, const char *text, const cpu_set_t *set);
/* The share that was stolen between two looks. A tick may have been in part another's, so
 * one of each side does not count. */
double steal_share(const struct steal *before, const struct steal *after);

/* From begin to end; cpus are the caller's to fill in before. */
struct steal_watch {
    cpu_set_t cpus;
    struct steal from;
    bool is_known;
    double share;
};

void steal_begin(struct steal_watch *w);
void steal_end(struct steal_watch *w);
