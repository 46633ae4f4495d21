/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The limits on requests, together: those of each client address, of each class, and of
 * all. A request passes them in this order and takes tokens of each; what happens when one
 * has none is the action. Pure: every function takes the time.
 *
 * `struct limiter` is shared by all workers; its settings may change at any time.
 * `struct limiter_worker` belongs to one worker's thread, any thread reads its counters.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/must.h"
#include "qos/class.h"
#include "qos/waitq.h"
#include "qos/limit.h"
#include "qos/peers.h"

enum limiter_action {
    ACTION_DELAY, /* wait; with a longest wait, an error for what would take longer */
    ACTION_ERROR, /* answer at once that the server is busy */
    ACTION_MISS,  /* answer as if nothing were stored, and store nothing */
};

enum limiter_verdict {
    VERDICT_ADMIT,
    VERDICT_WAIT,   /* the node is queued; limiter_next returns it */
    VERDICT_REFUSE, /* as the action says; limiter_refuses_as_miss */
};

struct limiter_rule {
    uint64_t rate, burst; /* tokens a second, 0: none; tokens, 0: default */
};

struct limiter_conf {
    struct limiter_rule total, by_class[CLASS_COUNT], peer;
    enum limiter_action action;
    nsec_t max_delay; /* of ACTION_DELAY; 0: none */
    bool counts_keys; /* a get of k keys takes k tokens */
    bool is_dry;      /* count requests that would be limited, but admit them */
};

struct limiter {
    _Atomic bool is_on;     /* some limit is set */
    _Atomic bool is_simple; /* that of all is the only one, and counts requests */
    struct limit total;
    struct limit by_class[CLASS_COUNT];
    struct peers peers;
    _Atomic unsigned action;
    _Atomic uint64_t max_delay;
    _Atomic bool counts_keys, is_dry;
    pthread_mutex_t set_lock;   /* the next three, and is_on */
    struct limiter_rule wanted; /* of `total`, as it was set */
    uint64_t ceiling;           /* another bound on the rate of `total`; 0: none */
};

/* By class; one writer. */
struct limiter_ctr {
    ctr_t admitted; /* at once or late */
    ctr_t delayed;  /* of those, the ones that had to wait */
    ctr_t rejected;
    ctr_t would_limit; /* dry run: would have been delayed or rejected */
};

#define LIMITER_PEER_HASHES 4096

struct limiter_worker {
    struct limiter *shared;
    struct waitq total;
    struct waitq by_class[CLASS_COUNT];
    /* Those that wait for tokens of their address, in one list that is looked through. */
    struct fair_node peers;
    struct fair_node
        *peers_next; /* where looking goes on; &peers: begins anew at peers_at */
    nsec_t peers_at;
    nsec_t peers_retry; /* the earliest that this look has been told */
    unsigned peers_length;
    unsigned peers_by_hash[LIMITER_PEER_HASHES];
    unsigned waiting; /* in all */
    struct limiter_ctr ctr[CLASS_COUNT];
    ctr_t more; /* tokens of what was admitted beyond one each, where keys are counted */
};

/* ---- shared --------------------------------------------------------------------------- */

void limiter_init(struct limiter *l, const struct limiter_conf *conf, unsigned workers,
                  nsec_t now);
void limiter_fini(struct limiter *l);
/* Workers that wait must look again after each of these (limiter_next). */
void limiter_set_total(struct limiter *l, struct limiter_rule rule, nsec_t now);
void limiter_set_class(struct limiter *l, enum req_class class, struct limiter_rule rule,
                       nsec_t now);
void limiter_set_peer(struct limiter *l, struct limiter_rule rule, nsec_t now);
/* A second bound on the rate of all, which leaves the first as it was set; 0: none. */
void limiter_set_ceiling(struct limiter *l, uint64_t rate, nsec_t now);
void limiter_set_unit(struct limiter *l, bool counts_keys);
void limiter_set_action(struct limiter *l, enum limiter_action action, nsec_t max_delay);
/* How long a worker may sleep though there may be tokens: waking up for each would cost more
 * than it serves, and buckets keep what accumulates meanwhile. */
nsec_t limiter_sleep_least(const struct limiter *l);
/* As it was set, without the ceiling. */
struct limiter_rule limiter_total(struct limiter *l);
static inline bool
limiter_refuses_as_miss(const struct limiter *l)
{
    return atomic_load_explicit(&l->action, memory_order_relaxed) == ACTION_MISS;
}

/* ---- a worker ------------------------------------------------------------------------- */

void limiter_worker_init(struct limiter_worker *d, struct limiter *l);
/* From here on tenants share the wait queues. */
void limiter_set_tenants(struct limiter_worker *d, struct fair_table *table);
/* Several tenants wait for tokens that a request of the class needs. */
must_check bool limiter_is_shared(const struct limiter_worker *d, enum req_class class);

struct limiter_request {
    enum req_class class;
    uint64_t peer;   /* key of the address; 0: has none, and no limit of its own */
    uint32_t tenant; /* likewise (qos/fair.h) */
    uint32_t keys;
};

/* Not for limiter_ask's callers. */
enum limiter_verdict limiter_ask_limits(struct limiter_worker *d, struct waitq_node *n,
                                        const struct limiter_request *r, bool has_waited,
                                        nsec_t now);

/* A new request, with n its place should it have to wait. has_waited: the one before it on
 * the same connection has just come from limiter_next, and it need not queue behind others
 * that wait. */
static inline enum limiter_verdict
limiter_ask(struct limiter_worker *d, struct waitq_node *n,
            const struct limiter_request *r, bool has_waited, nsec_t now)
{
    const struct limiter *l = d->shared;
    if (unlikely(atomic_load_explicit(&l->is_on, memory_order_relaxed))) {
        /* A limit of all that does not bind: nearly each request has a token of the lease. */
        bool is_easy = atomic_load_explicit(&l->is_simple, memory_order_relaxed) &&
                       (d->total.waiting.length == 0 || has_waited);
        if (!is_easy || !limit_take_leased(&l->total, &d->total.lease, now)) {
            return limiter_ask_limits(d, n, r, has_waited, now);
        }
    }
    ctr_add(&d->ctr[r->class].admitted, 1);
    return VERDICT_ADMIT;
}

/* So many requests of one key, up to `most`, may pass without asking: all while there is no limit,
 * else those that there is a lease for; none while others wait. */
unsigned limiter_unasked(struct limiter_worker *d, unsigned most, nsec_t now);
/* So many of those have passed. A setting may have changed meanwhile: then the lease is void. */
static inline void
limiter_pass(struct limiter_worker *d, enum req_class class, unsigned n)
{
    struct limit_lease *lease = &d->total.lease;
    lease->tokens -= n < lease->tokens ? n : lease->tokens;
    ctr_add(&d->ctr[class].admitted, n);
}

/* More keys of an admitted request have turned up: their tokens are owed. */
void limiter_owe(struct limiter_worker *d, const struct limiter_request *r, nsec_t now);

/* Tokens of all that were admitted. Any thread. */
uint64_t limiter_tokens(const struct limiter_worker *d);

/* One that has waited and may go on (ADMIT) or has to give up (REFUSE). NULL: none now.
 * lets_all: all that wait are admitted. */
struct waitq_node *limiter_next(struct limiter_worker *d, bool lets_all, nsec_t now,
                                enum limiter_verdict *verdict);
/* One that limiter_next has admitted does not need its tokens any more. */
void limiter_give_back(struct limiter_worker *d, struct waitq_node *n, nsec_t now);
/* When limiter_next is worth a call; UINT64_MAX when none waits. */
nsec_t limiter_due(struct limiter_worker *d, nsec_t now);
/* A setting has changed: what was known of the future is void. */
void limiter_look_again(struct limiter_worker *d);
/* n waits no more: it gives back the tokens that it has. */
void limiter_leave(struct limiter_worker *d, struct waitq_node *n);
/* For limiter_rest. */
void limiter_give_leases(struct limiter_worker *d, nsec_t now);
/* The worker goes idle: unused tokens go back, if others may need them. */
static inline void
limiter_rest(struct limiter_worker *d, nsec_t now)
{
    /* Leases of a limit that was lifted are void. */
    if (unlikely(atomic_load_explicit(&d->shared->is_on, memory_order_relaxed))) {
        limiter_give_leases(d, now);
    }
}
