/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Per-worker queues of deferred work, one a request class, and the choice of the next. What is
 * queued is a connection's head request: replies on a connection keep their order, so at
 * most one request of each is eligible, and membership in a queue is the whole state.
 *
 * The law (deficit round robin, Shreedhar and Varghese 1995), over measured time instead of
 * bytes: in a round of SCHED_ROUND_NS each class has its share; one that has used it up waits for
 * the next round, which begins when no class with work has any left, and what was used beyond it
 * is owed. Small requests that were served where they were read count as their class's use. A
 * busy period begins without debts. Within a class tenants have equal parts of its share, by the
 * same law (qos/fair.h).
 *
 * Starvation bound: whatever the shares, a class whose queue has had no turn for `max_wait` is
 * next.
 *
 * Pure; the worker's thread only. Nodes are intrusive: no allocation, O(1).
 */
#pragma once

#include "base/clock.h"
#include "qos/class.h"
#include "qos/fair.h"

#define SCHED_ROUND_NS (500 * NSEC_PER_USEC)
#define SCHED_DEBT_ROUNDS 16 /* what is remembered of using more than a share */
#define SCHED_MAX_WAIT_NS (5 * NSEC_PER_MSEC)
/* Of a tenant, in the queue of a class: some small requests. */
#define SCHED_TENANT_NS (10 * NSEC_PER_USEC)

struct sched_queue {
    struct fair_queue waiting;
    int64_t left;       /* ns of this round; below 0: owed */
    int64_t quantum;    /* ns of each round */
    nsec_t waits_since; /* for a turn, while it has work */
};

struct sched {
    struct sched_queue queues[CLASS_COUNT];
    unsigned length; /* of all */
    nsec_t max_wait;
};

void sched_init(struct sched *s, const struct class_shares *shares, nsec_t max_wait);
/* From here on tenants share the queues. */
void sched_set_tenants(struct sched *s, struct fair_table *table);

/* Appends to the queue of its class; n must not be queued. */
void sched_push(struct sched *s, struct fair_node *n, enum req_class class, nsec_t now);
/* Leaves its queue, if it is in one. */
void sched_remove(struct sched *s, struct fair_node *n);

/* Takes the node whose turn it is; NULL when all are empty. *is_overdue: it was its class's
 * wait that decided; such a turn comes on top of what sched_deferred_ns allows. */
struct fair_node *sched_next(struct sched *s, nsec_t now, bool *is_overdue);
/* A class has used so much of the worker's time. */
void sched_charge(struct sched *s, enum req_class class, nsec_t used);
/* And so has its tenant at this place, which had the turn. */
void sched_charge_turn(struct sched *s, enum req_class class, uint8_t place, nsec_t used);

/* How long small requests may be served where they are read, in one pass, while others are
 * queued; and how long deferred work may then run, `turn` at least. */
nsec_t sched_inline_ns(const struct sched *s, nsec_t turn);
nsec_t sched_deferred_ns(const struct sched *s, nsec_t turn, nsec_t inline_used);
