/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A worker's side of the limits: it asks them for each request, and lets those that have to
 * wait for tokens go on in rounds, when a timer says so or it is awake anyway. The worker's
 * thread; `desk.ctr` and `delay` may be read by any.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/hist.h"
#include "base/must.h"
#include "qos/limiter.h"

/* Buckets of the delays' histogram: 3 % wide is enough for a summary. */
#define LIMITED_SUB_BITS 5
#define LIMITED_MAX_NS (100 * NSEC_PER_SEC)

struct task;
struct worker;

struct limited {
    struct limiter_desk desk; /* who waits for tokens */
    bool refuses_rest;        /* the last refusal was for what the SLO says */
    int timer_fd;             /* wakes the worker for the next token */
    struct event timer_event;
    bool is_armed;
    nsec_t armed_at;
    nsec_t round_at;    /* when the round that goes on began; 0: none does */
    struct hist *delay; /* ns that limited requests waited */
};

/* False with errno; limited_fini takes what there is. */
must_check bool limited_init(struct worker *w);
void limited_fini(struct worker *w);
/* In the worker's event base, and out of it. False: no memory. */
must_check bool limited_start(struct worker *w);
void limited_stop(struct worker *w);

/* Asks the limits for a request. WAIT: the task is queued for tokens. Those that wait come
 * first, unless t `is_served`: it has waited and goes on with its next request. */
must_check enum limiter_verdict limited_ask(struct worker *w, struct task *t,
                                            const struct limiter_request *r,
                                            bool is_served);
/* A limit has changed: whoever waits is looked at at the end of this pass. */
void limited_look_again(struct limited *l);
/* Lets tasks go on, oldest first, while there are tokens. A round takes several passes when
 * there are many, and ends with those whose time had come when it began. */
void limited_serve(struct worker *w);
/* Is limited_serve to be called again before the worker sleeps? */
must_check bool limited_is_due(const struct worker *w);
