/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a worker's queues hold: a connection, or one of its UDP sockets. Embedded as the first
 * member of both. Owner: the worker's thread.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "qos/limiter.h"
#include "qos/sched.h"

struct task {
    struct sched_node node; /* first: the queues hold tasks by this */
    bool is_udp;
    bool is_admitted;      /* the pending request has its tokens */
    bool is_refused;       /* it has waited for them in vain */
    struct gate_node wait; /* its place while it waits for them */
};

/* Waits for its next turn, or for tokens. */
static inline bool
task_is_queued(const struct task *t)
{
    return sched_is_queued(&t->node) || gate_is_waiting(&t->wait);
}

#define TURN_ENDLESS UINT64_MAX

/* How much a turn may do. */
struct turn {
    bool is_inline;      /* right where it was read, not from a queue */
    enum req_class lane; /* what is of a later class than this waits in its own queue */
    bool is_served;      /* its first request has waited for a token */
    nsec_t ready_at;     /* when the socket was reported, or the task was queued */
    unsigned requests;   /* still allowed in a row */
    unsigned reads;      /* done */
    bool has_run;        /* a request, or a piece of one */
    bool has_long;       /* one that may be long */
    nsec_t admitted_at;  /* its first request was, while an SLO looks at each; 0: none */
    struct limiter_spare spare; /* further requests that need not ask */
    nsec_t deadline;            /* of a deferred turn; TURN_ENDLESS: other bounds do */
};

/* Serves whatever it is. */
void task_take_turn(struct task *t, struct turn *turn);
