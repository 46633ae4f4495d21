/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The requests of one worker: what each of them passes from its first byte to its reply. It knows
 * no socket, no event loop and no clock: net/ brings bytes and takes bytes, and `clock` tells
 * the time, which tests invent.
 *
 *     bytes -> pump -> classify -> admission -> queue -> session -> bytes
 *
 * A pass is one round of the worker's event loop: it polls, serves small requests where they are
 * read, and then what is deferred.
 *
 * `struct core_shared` is common to all workers. `struct core` belongs to one worker's thread; any
 * thread reads its counters and histograms.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/hist.h"
#include "base/pool.h"
#include "core/admission.h"
#include "core/budget.h"
#include "core/coalesce.h"
#include "core/latency.h"
#include "core/queue.h"
#include "core/tenants.h"
#include "qos/class_rules.h"
#include "qos/history.h"
#include "qos/limiter.h"
#include "qos/slo.h"
#include "serve/env.h"

/* Buckets of the classes' histograms: 6 % wide. */
#define CORE_CLASS_SUB_BITS 4
#define CORE_CLASS_MAX_NS (10 * NSEC_PER_SEC)

/* Set up before the first worker starts. */
struct core_shared {
    struct class_conf classes;
    struct class_rules class_rules;
    _Atomic bool
        reads_keys; /* a rule of classes or --fair=prefix: keys decide something */
    _Atomic unsigned fair_by; /* enum fair_by */
    struct class_shares class_shares;
    nsec_t class_max_wait;
    unsigned requests_per_event; /* -R */
    struct limiter limiter;
    struct slo slo;
    _Atomic bool times_passes; /* busy_ns is counted */
};

/* What the requests of a class came to. */
struct core_class {
    ctr_t queued;         /* times that work of it entered the queue */
    ctr_t turns;          /* that were taken off it */
    ctr_t overdue;        /* of those, the ones that its wait brought forward */
    ctr_t left;           /* times that work left the queue unserved */
    ctr_t served;         /* requests, deferred or not */
    ctr_t served_udp;     /* of those, the ones that came as datagrams */
    ctr_t bytes;          /* of replies, and of values stored */
    struct hist *wait;    /* ns in the queue, a turn */
    struct hist *service; /* ns of a turn */
};

struct core_ctr {
    ctr_t trickled;      /* reads that were charged for completing no request */
    ctr_t trickle_waits; /* times that work was queued for that */
    ctr_t busy_ns;       /* between two polls, while passes are timed */
};

struct pass {
    bool is_fresh;         /* the clock was read in this pass */
    bool is_timed;         /* its end is wanted */
    nsec_t woke_at;        /* its first look at the clock */
    nsec_t polled_at;      /* when the last timed pass ended; 0: it was not timed */
    nsec_t heard_at;       /* what its poll found arrived later, as far as is known */
    uint64_t asked_before; /* small requests that the SLO had seen when it began */
};

/* What most requests have to know of settings, made when one has changed (base/changes.h) or a new
 * second has begun. */
struct settings_view {
    uint32_t changes; /* that there were */
    nsec_t second;    /* that began then is env.now */
    bool admits_most; /* there is neither an SLO nor a limit */
    bool sees_each;   /* each request is to be seen by itself: none is plain */
};

struct core {
    struct core_shared *shared;
    nsec_t (*clock)(void);
    nsec_t now;
    bool is_draining; /* the process ends: what has arrived is served, without limits */
    struct settings_view view;
    struct pass pass;
    struct pool pool;
    struct env env;
    struct req *spare_request;
    struct queue queue;
    struct admission admission;
    struct tenants tenants;
    struct coalesce coalesce;
    struct history_peers peers;
    struct budget budget;
    struct latency latency;
    struct core_ctr ctr;
    struct core_class classes[CLASS_COUNT];
};

/* env: but for its chain, which is of the core's pool; buffer_bytes: budget of replies and input,
 * 0: none. False: no memory; core_fini takes what there is. The pool is the thread's that uses
 * it: core_start there, before anything else, and core_stop. log: the thread's, or NULL. */
must_check bool core_init(struct core *k, struct core_shared *shared,
                          nsec_t (*clock)(void), const struct env *env,
                          uint64_t buffer_bytes);
void core_fini(struct core *k);
void core_start(struct core *k, struct watch_ring *log);
void core_stop(struct core *k);

/* ---- a pass, in this order ------------------------------------------------------------- */

/* Before the poll. False: it may sleep, for nothing is left to do. */
must_check bool core_begin_pass(struct core *k);
/* In each callback of the poll: the pass's time, and the clock of `env`. */
void core_wake(struct core *k);
/* After the poll: those that waited for tokens go on, then deferred work has its turns. */
void core_serve(struct core *k);
void core_end_pass(struct core *k);
/* Behind it: the thread let another one run. What arrived meanwhile has waited. */
void core_gave_way(struct core *k);

/* Reads the clock again, and looks at what has changed. */
nsec_t core_read_clock(struct core *k);
/* The process ends. */
void core_drain(struct core *k);

static inline bool
core_has_slo(const struct core *k)
{
    return slo_is_on(&k->shared->slo);
}

/* There is neither an SLO nor a limit. */
static inline bool
core_admits_most(const struct core *k)
{
    return !core_has_slo(k) &&
           !atomic_load_explicit(&k->shared->limiter.is_on, memory_order_relaxed);
}

/* A turn for work right where it was read. Without classes it goes on until its requests are
 * served, as if there was no queue. */
static inline struct turn
core_inline_turn(const struct core *k)
{
    return (struct turn){.is_inline = k->shared->classes.is_on,
                         .lane = CLASS_SMALL,
                         .ready_at = k->pass.woke_at,
                         .requests = k->shared->requests_per_event,
                         .deadline = TURN_ENDLESS};
}

/* Requests, or a part of one, have made so many bytes of output; `done` are finished. */
static inline void
core_account(struct core *k, enum req_class class, uint64_t bytes, unsigned done)
{
    struct core_class *c = &k->classes[class];
    ctr_add(&c->bytes, bytes);
    ctr_add(&c->served, done);
}
