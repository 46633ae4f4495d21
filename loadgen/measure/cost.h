/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a sending thread itself cost in the measured window, and what it was kept from.
 */
#pragma once

#include <sched.h>

#include "base/must.h"

/* ---- steal ------------------------------------------------------------------------- */

/* CPU time that a hypervisor gave to others while this machine wanted it, as /proc/stat
 * counts it, in ticks of some CPUs. */
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

/* ---- cost -------------------------------------------------------------------------- */

struct cost {
    double elapsed_s, cpu_s;
    double idle_s; /* in polls that found nothing; a part of cpu_s, and of wait_s */
    double wait_s; /* had work, and no CPU (the kernel's schedstat); 0: not known */
};

/* Of the calling thread, since it began: CPU time and time waited for a CPU. A dozen
 * microseconds. */
struct cost cost_now(void);
