/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How large the queue of new items is for s3fifo, in per cent of a class. Private to store/.
 *
 * Few, as long as what leaves the main queue is missed: then that is worth its memory. When other keys
 * than before are asked for, what leaves it does not return, but what leaves the queue of new items
 * does: then that gets more, until those keys are in the main queue.
 *
 * Any thread; the share is read without the lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define HOTSHARE_PERIOD 32u /* ghosts of a class from one hotshare_add to the next */

/* Of one class since the last time, or of all. */
struct hotshare_counts {
    uint64_t ghosts;    /* left the queue of new items, */
    uint64_t came_back; /* and were stored again */
    uint64_t losses;    /* left the main queue, */
    uint64_t returns;   /* and were stored again */
};

struct hotshare {
    _Atomic unsigned pct; /* relaxed */
    pthread_mutex_t lock; /* may be taken with a class's */
    uint64_t losses;      /* ever */
    struct hotshare_counts now;
    uint64_t came_back, returns; /* sums that fade */
};

void hotshare_init(struct hotshare *h, const pthread_mutexattr_t *lock_attr);
void hotshare_fini(struct hotshare *h);
/* There are so many items. */
void hotshare_add(struct hotshare *h, const struct hotshare_counts *more, uint64_t items);

static inline unsigned
hotshare_pct(const struct hotshare *h)
{
    return atomic_load_explicit(&((struct hotshare *)(uintptr_t)h)->pct,
                                memory_order_relaxed);
}
