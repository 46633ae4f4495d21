/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the kernel tells of a thread of this process in /proc: how long it ran, how long it
 * waited for a CPU, how often it changed it. Any thread may ask; it costs a few system calls.
 */
#pragma once

#include <sys/types.h>

#include "base/must.h"

struct threadstat {
    uint64_t run_ns;
    uint64_t wait_ns;    /* ready to run, but not running */
    uint64_t migrations; /* 0 where the kernel does not count them */
};

/* What is not there is 0. */
void threadstat_read(pid_t tid, struct threadstat *t);
/* All but migrations. The run time is that of now; the files have it as it was at the last tick
 * or switch, 10 ms ago at the worst. */
void threadstat_read_times(pid_t tid, struct threadstat *t);
/* For frequent use, and as the file has it: the file, or -1; the caller closes it. */
must_check int threadstat_open_times(pid_t tid);
void threadstat_reread_times(int fd, struct threadstat *t);

/* Is the thread ready to run on this CPU, that of the caller, which thus keeps it waiting? */
must_check bool threadstat_waits_for(pid_t tid, int cpu);

/* The text of .../stat: the state, R for ready or running, and the CPU. False: it is something else. */
must_check bool threadstat_parse_state(const char *text, char *state, int *cpu);
/* The text of .../schedstat, "run-ns wait-ns slices". False: it is something else. */
must_check bool threadstat_parse_times(const char *text, struct threadstat *t);
/* The text of .../sched, of which one line counts. */
must_check bool threadstat_parse_migrations(const char *text, struct threadstat *t);
