/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Per-worker queues of deferred work, one a request class. What is queued is a connection's
 * head request: replies on a connection keep their order, so at most one request of each is
 * eligible, and membership in a queue is the whole state. Inline classes never queue.
 *
 * Pure; the worker's thread only. Nodes are intrusive: no allocation, O(1).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "qos/class.h"

struct sched_node {
    struct sched_node *next, *prev; /* NULL when not queued */
    enum req_class class;
    nsec_t queued_at;
};

struct sched_queue {
    struct sched_node head; /* circular; head.next is the oldest */
    unsigned length;
};

struct sched {
    struct sched_queue queues[CLASS_COUNT];
    unsigned length; /* of all */
};

void sched_init(struct sched *s);

static inline bool
sched_is_queued(const struct sched_node *n)
{
    return n->next != NULL;
}

/* Appends to the queue of its class; n must not be queued. */
void sched_push(struct sched *s, struct sched_node *n, enum req_class class, nsec_t now);
/* The node that sched_pop would take; NULL when all are empty. */
struct sched_node *sched_first(const struct sched *s);
/* Takes the next node to serve: oldest of the first non-empty class in class order. NULL
 * when all are empty. */
struct sched_node *sched_pop(struct sched *s);
/* Leaves its queue, if it is in one. */
void sched_remove(struct sched *s, struct sched_node *n);
