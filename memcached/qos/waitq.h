/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One worker's wait queue in front of a limit: first come, first served, and among several
 * workers too; of several tenants each in turn (qos/fair.h), a token at a time.
 *
 * The law follows from the limit's: to reserve tokens ahead of time moves its TAT on, and the TAT
 * is when they are there. So each of the first WAITQ_SLOTS has a slot, and slots of all workers
 * lie one behind the other in the order in which they were asked for. A slot belongs to the
 * queue, not to a node: when a node leaves, those behind it move up, and the last slot goes back
 * if there are more of them than nodes.
 *
 * Pure; the worker's thread only. Nodes are intrusive: no allocation, O(1).
 */
#pragma once

#include "base/clock.h"
#include "qos/fair.h"
#include "qos/limit.h"

#define WAITQ_SLOTS 64
/* How old a slot may be used, besides the time in which the bucket fills: a worker that got
 * no CPU catches up on so much. Older ones are void, or it could pass all at once. */
#define WAITQ_LATE_MAX (20 * NSEC_PER_MSEC)
#define WAITQ_DEBT_MOST 4096 /* tokens of a tenant that are remembered */

struct waitq_node {
    struct fair_node
        node; /* first. since: it asked; kept when it moves on to another room */
    uint64_t peer;
    uint32_t cost; /* tokens that it needs */
    uint8_t stage; /* for limiter.c: which limits it has passed */
};

struct waitq_slot {
    nsec_t due;
    uint32_t cost;
};

struct waitq {
    struct limit *limit;
    struct limit_lease lease;
    struct fair_queue waiting;
    uint64_t cost;       /* of all that wait */
    uint64_t slots_cost; /* that is reserved */
    uint64_t epoch;      /* of the slots */
    unsigned first, slots;
    struct waitq_slot ring[WAITQ_SLOTS];
};

/* number: as a queue that tenants share. */
void waitq_init(struct waitq *g, struct limit *limit, unsigned number);

static inline bool
waitq_is_waiting(const struct waitq_node *n)
{
    return fair_is_queued(&n->node);
}

/* True: n's tokens are taken. has_waited: it need not queue behind those that wait
 * without tokens of their own, for it comes from the front. */
bool waitq_take(struct waitq *g, struct waitq_node *n, nsec_t now, bool has_waited);
/* n waits from here on. Returns when its turn comes; what is only known to be later, as the
 * earliest time. */
nsec_t waitq_push(struct waitq *g, struct waitq_node *n, nsec_t now);
/* The first that waits, when its tokens are there: they are taken. NULL: not yet. */
struct waitq_node *waitq_pop(struct waitq *g, nsec_t now);
/* That which has waited longest; NULL: none waits. */
struct waitq_node *waitq_oldest(const struct waitq *g);
void waitq_remove(struct waitq *g, struct waitq_node *n);
/* When waitq_pop is worth a try; UINT64_MAX when the queue is empty. */
nsec_t waitq_due(const struct waitq *g, nsec_t now);
/* The tokens with which waitq_pop returned a node are not needed: they are the next
 * one's. */
void waitq_give_back(struct waitq *g, uint32_t cost, nsec_t now);
/* Gives n's tokens back, right after waitq_take took them. */
void waitq_untake(struct waitq *g, const struct waitq_node *n);
