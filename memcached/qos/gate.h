/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One worker's waiting room in front of a limit: first come, first served, and among several
 * workers too. Each of the first GATE_SLOTS that wait has a slot, a time at which the limit
 * owes it its tokens; slots are given out in the order in which requests of all workers
 * asked. A slot belongs to the queue, not to a node: when a node leaves, those behind
 * move up and the last slot goes back.
 *
 * Pure; the worker's thread only. Nodes are intrusive: no allocation, O(1).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "qos/limit.h"

#define GATE_SLOTS 64
/* How old a slot may be used, besides the time in which the bucket fills: a worker that got
 * no CPU catches up on so much. Older ones are void, or it could pass all at once. */
#define GATE_LATE_MAX (20 * NSEC_PER_MSEC)

struct gate_node {
    struct gate_node *next, *prev; /* NULL: waits nowhere */
    bool has_slot;
    uint32_t cost; /* tokens that it needs */
    nsec_t since;  /* it asked; kept when it moves on to another room */
    uint8_t stage; /* for limiter.c: which limits it has passed */
    uint8_t class; /* likewise */
    uint64_t peer;
};

struct gate_slot {
    nsec_t due;
    uint32_t cost;
};

struct gate {
    struct limit *limit;
    struct limit_lease lease;
    struct gate_node head; /* circular; head.next is the oldest */
    unsigned length;
    struct gate_node *bare; /* the first without a slot; &head when all have one */
    uint64_t epoch;         /* of the slots */
    unsigned first, slots;
    struct gate_slot ring[GATE_SLOTS];
};

void gate_init(struct gate *g, struct limit *limit);

static inline bool
gate_is_waiting(const struct gate_node *n)
{
    return n->next != NULL;
}

/* True: n's tokens are taken. has_waited: it need not queue behind those that wait
 * without tokens of their own, for it comes from the front. */
bool gate_take(struct gate *g, struct gate_node *n, nsec_t now, bool has_waited);
/* n waits from here on. Returns when its turn comes; what is only known to be later, as the
 * earliest time. */
nsec_t gate_push(struct gate *g, struct gate_node *n, nsec_t now);
/* The first that waits, when its tokens are there: they are taken. NULL: not yet. */
struct gate_node *gate_pop(struct gate *g, nsec_t now);
void gate_remove(struct gate *g, struct gate_node *n);
/* When gate_pop is worth a try; UINT64_MAX when the queue is empty. */
nsec_t gate_due(const struct gate *g, nsec_t now);
/* The tokens with which gate_pop returned a node are not needed: they are the next
 * one's. */
void gate_give_back(struct gate *g, uint32_t cost, nsec_t now);
/* Gives n's tokens back, right after gate_take took them. */
void gate_untake(struct gate *g, const struct gate_node *n);
