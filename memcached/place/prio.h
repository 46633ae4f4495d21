/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How the kernel schedules the workers (--sched): the option, its application to a thread, and
 * what the kernel says it applied. The right to it may need keeping: place/scheduling.h.
 */
#pragma once

#include <sys/types.h>

#include "base/must.h"

enum prio_policy {
    PRIO_LEAVE, /* as the process was started */
    PRIO_OTHER, /* nice */
    PRIO_SLICE, /* a slice of its own: the same share, in smaller pieces, sooner */
    PRIO_FIFO,
    PRIO_RR,
    PRIO_BVT,   /* asks for a warp: patches/linux-6.1-bvt or patches/sched_ext-bvt */
    PRIO_BATCH, /* preempts no thread when it wakes up: for a server that is to yield */
};

/* What the kernel takes: it would make these of shorter or longer slices. */
#define PRIO_SLICE_MIN_NS UINT64_C(100000)
#define PRIO_SLICE_MAX_NS UINT64_C(100000000)

struct prio_spec {
    enum prio_policy policy;
    int nice;          /* PRIO_OTHER */
    unsigned priority; /* PRIO_FIFO, PRIO_RR: 1 to 99 */
    uint64_t slice_ns; /* PRIO_SLICE */
};

/* What a thread has. */
struct prio_seen {
    const char *policy; /* other, batch, idle, fifo, rr, deadline, ext */
    int nice;
    unsigned priority;
    uint64_t slice_ns; /* 0: the kernel does not tell */
    bool resets_on_fork;
};

/* Parses "other:-20", "slice:100us", "fifo", "fifo:10", "rr:10", "bvt", "batch". NULL, or what is
 * wrong; "deadline" is refused with the reason. */
must_check const char *prio_parse(void *to, const char *text);
/* "slice:100000ns", "default"; the text lives until the thread's next call. */
const char *prio_name(const struct prio_spec *spec);
/* Locks shared with threads of another priority must inherit it. */
bool prio_is_realtime(const struct prio_spec *spec);
/* CAP_SYS_NICE, or for some a resource limit, by how the calling thread is scheduled now: to have more than
 * that needs it. For a slice it is the nudgers that need it (place/scheduling.h). */
bool prio_needs_right(const struct prio_spec *spec);

/* To a thread of this process; tid 0: the calling one. 0, or the errno; ENOTSUP: the kernel
 * ignored it; ENODEV: it asks for a warp, and bvt is not loaded yet. Children of the thread start without it. */
must_check int prio_apply(const struct prio_spec *spec, pid_t tid);
/* Of a thread of this process (0: the calling one), where the kernel's default scheduler gives warps.
 * 0, or the errno; ENOENT: it gives none; ENOTSUP: it did not take it. `root`: as in place/cgroup.h. */
must_check int prio_warp(const char *root, pid_t tid);
/* Is bvt the scheduler, which gives a warp to threads that ask for one? `root`: as in
 * place/cgroup.h. */
must_check bool prio_has_bvt(const char *root);
/* 0, or the errno. */
must_check int prio_read(pid_t tid, struct prio_seen *seen);
/* Why prio_apply failed and what helps, as one sentence. `root`: as in place/cgroup.h. */
void prio_explain(const struct prio_spec *spec, int error, const char *root, char *text,
                  size_t len);

/* Where the kernel groups threads by session (autogroup), niceness counts within the session
 * only: gives this one the same. Nothing happens where that does not apply. 0, or the errno. */
must_check int prio_lift_autogroup(const struct prio_spec *spec);
/* The autogroup's nice value as text; "off": there are none; "cgroup": the process is in a
 * control group for CPU time instead. */
void prio_autogroup(char *text, size_t len);
