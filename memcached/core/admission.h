/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether a request is served now, later or not at all: every policy that a request passes is
 * behind admission_ask, in the order in which admission.c has them. Requests that wait for
 * tokens go on in rounds, when the worker's timer says so or it is awake anyway.
 *
 * The worker's thread; the counters, levels and `delay` may be read by any.
 */
#pragma once

#include "base/clock.h"
#include "base/hist.h"
#include "base/must.h"
#include "qos/limiter.h"
#include "qos/slo.h"

/* Buckets of the delays' histogram: 3 % wide is enough for a summary. */
#define ADMISSION_SUB_BITS 5
#define ADMISSION_MAX_NS (100 * NSEC_PER_SEC)

struct core;
struct core_shared;
struct turn;

/* A request's way through admission; embedded in the work whose head it is. */
struct ticket {
    struct waitq_node wait; /* its place while it waits for tokens */
    bool is_admitted;       /* the request has them */
    bool is_refused;        /* it has waited for them in vain */
};

/* What admission knows of a request. */
struct facts {
    struct limiter_request ask;
    nsec_t since; /* it has waited since then; 0: not known */
};

struct admission {
    struct limiter_worker limits; /* those that wait for tokens */
    struct slo_watch slo;
    bool refuses_rest; /* the last refusal was the SLO's */
    bool is_armed;     /* the worker is to be woken at wake_at, to serve a round */
    nsec_t wake_at;
    nsec_t round_at;    /* when the round that goes on began; 0: none does */
    struct hist *delay; /* ns that limited requests waited */
};

/* False: no memory; admission_fini takes what there is. */
must_check bool admission_init(struct admission *a, struct core_shared *shared,
                               nsec_t now);
void admission_fini(struct admission *a);

/* Asks for a request. WAIT: the ticket is queued for tokens. Those that wait come first, unless the
 * turn is that of work which has waited, and goes on with its next request. */
must_check enum limiter_verdict admission_ask(struct core *k, struct ticket *t,
                                              const struct facts *facts,
                                              struct turn *turn);
/* So many requests of one key, up to `most`, need not be asked for one by one: no limit binds, and
 * the SLO neither refuses nor measures what is read next. */
must_check unsigned admission_unasked(struct core *k, unsigned most);
/* So many of those were served. */
void admission_pass(struct core *k, enum req_class class, unsigned n);
/* Refused requests are answered as if nothing were stored, not with an error. */
must_check bool admission_refuses_as_miss(const struct core *k);
/* Requests that were admitted or refused; each takes time. Any thread. */
uint64_t admission_answered(const struct admission *a);
/* A turn is over, and its replies are written: the SLO learns how long that takes. */
void admission_end_turn(struct core *k, const struct turn *turn);
/* Work of a class had waited so long when its turn came. */
void admission_observe(struct core *k, enum req_class class, nsec_t wait, nsec_t now);
/* Input is about to be read: is it worth while to measure how long it has waited? */
must_check bool admission_wants_delay(struct core *k);
/* It was not asked, and has been read. */
void admission_skip_delay(struct core *k);

/* The request waits no more. */
void admission_leave(struct core *k, struct ticket *t);
/* A limit has changed: those that wait are looked at at the end of this pass. */
void admission_look_again(struct core *k);
/* wake_at has come. */
void admission_wake(struct core *k);
/* Lets work go on, the oldest first, while there are tokens. A round takes several passes when
 * there are many, and ends with those whose time had come when it began. */
void admission_serve(struct core *k);
/* Is admission_serve to be called again before the worker sleeps? */
must_check bool admission_is_due(const struct core *k);
/* The worker goes idle: unused tokens go back. */
void admission_rest(struct core *k);
