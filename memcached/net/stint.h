/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How long a worker works without a rest, and giving way to another one that waits for its CPU.
 *
 * Workers may share a CPU: there are more of them than CPUs, or the kernel has put them there. One that wakes
 * up while another one works waits until that sleeps or its slice is over, which is 3 to 4 ms, and with it
 * the small requests of its clients. To the kernel both have the same right to the CPU. To their clients they
 * are one server, whose small requests are not to wait for its large ones; so after a stint of
 * STINT_LONG_NS a worker looks whether another one waits, and sleeps for a moment if it does. It sleeps, for
 * sched_yield(2) gives up the rest of its share of the CPU, also to other programs.
 *
 * A stint is its worker's; the other ones read `last`, `poll_fd` and `tid`.
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"

#define STINT_LONG_NS (500 * NSEC_PER_USEC)
/* Between the times that passes read there is less, unless the worker has slept. */
#define STINT_REST_NS (100 * NSEC_PER_USEC)
#define STINT_NAP_NS (20 * NSEC_PER_USEC)

/* last: the latest time that its worker's passes have read. poll_fd: readable if there is work for the worker;
 * -1: there is none any more. since: when the stint began. gave_way: times. */
struct stint {
    _Alignas(64) _Atomic nsec_t last;
    _Atomic int poll_fd;
    _Atomic pid_t tid;
    nsec_t since;
    ctr_t gave_way;
};

/* Of so many workers, which have not started; to be freed. NULL: no memory. */
struct stint *stints_create(unsigned count);

/* A pass is over. now: the latest time that it has read. may_rest: its poll may have slept. */
static inline bool
stint_is_long(struct stint *s, nsec_t now, bool may_rest)
{
    if (may_rest &&
        now - atomic_load_explicit(&s->last, memory_order_relaxed) > STINT_REST_NS) {
        s->since = now;
    }
    atomic_store_explicit(&s->last, now, memory_order_relaxed);
    return unlikely(now - s->since >= STINT_LONG_NS);
}

/* In the worker's thread, before its first pass: it has work when this is readable. */
void stint_start(struct stint *s, int poll_fd);
void stint_stop(struct stint *s);
/* The stint of this one of the workers is long, and its next one begins: it sleeps for a moment if another one
 * waits for its CPU. True: it did. */
must_check bool stint_end(struct stint *stints, unsigned count, unsigned self);
