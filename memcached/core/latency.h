/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the time of a request goes. Every 64th read of a worker is followed from the packet to
 * the end of the write; the others are not touched and cost no look at the clock. Of requests that
 * were read together it is the first that is reported.
 *
 *     packet ..... ready ..... recv .... done ..... send .... done
 *           kernel       loop       read     execute     write
 *
 * Owner: the worker's thread; the histograms may be read by any.
 */
#pragma once

#include "base/clock.h"
#include "base/ctr.h"
#include "base/hist.h"
#include "base/sojourn.h"
#include "qos/class.h"

#define LATENCY_SUB_BITS 4 /* buckets 6 % wide */
#define LATENCY_MAX_NS (10 * NSEC_PER_SEC)
/* One that is not answered so long after it was read makes room for another, since a request may wait
 * for tokens for as long as its client does: it counts with the time until then. */
#define LATENCY_PATIENCE_NS (100 * NSEC_PER_MSEC)

enum latency_stage {
    LATENCY_KERNEL,
    LATENCY_LOOP,
    LATENCY_DELAY, /* both together: until it was read */
    LATENCY_READ,
    LATENCY_EXECUTE,
    LATENCY_WRITE,
    LATENCY_STAGES
};

struct latency {
    const void *followed; /* the connection or UDP flow that is followed; NULL: none */
    nsec_t ready_at, read_at;
    struct sojourn sojourn;
    nsec_t read_ns;
    enum req_class class; /* of the first request of the read; NONE: not known yet */
    bool is_read;
    bool is_over;    /* the first request is */
    bool is_refused; /* it is answered without having been run */
    ctr_t delay_ns;  /* of all that were followed, until they were read */
    ctr_t delays;    /* how many they were */
    struct hist *stages[CLASS_COUNT][LATENCY_STAGES];
    struct hist *refused[CLASS_COUNT][LATENCY_STAGES];
};

/* False: no memory; latency_fini takes what there is. */
must_check bool latency_init(struct latency *l);
void latency_fini(struct latency *l);

/* Whether none is followed, or no longer. */
must_check bool latency_has_room(struct latency *l, nsec_t now);
/* Follows the next read of this connection or flow; its socket was reported at ready_at. */
void latency_begin(struct latency *l, const void *followed, nsec_t ready_at);
/* The read began with these times, and has ended with some input at `now`. */
void latency_read(struct latency *l, struct sojourn_times *times, nsec_t now);
/* Its reply is written from `begin` on, until now. */
void latency_end(struct latency *l, nsec_t begin, nsec_t now);
/* Output of that one may be its reply. */
static inline bool
latency_is_answered(const struct latency *l, const void *followed)
{
    return unlikely(l->followed == followed) && l->class != CLASS_NONE;
}
/* Forgets the request, if it is that one's: it has no reply. */
static inline void
latency_forget(struct latency *l, const void *followed)
{
    if (l->followed == followed) {
        l->followed = NULL;
    }
}

/* A request is of this class, if it is that one's that is followed. */
static inline void
latency_note(struct latency *l, const void *followed, enum req_class class, bool is_over)
{
    if (unlikely(l->followed == followed) && !l->is_over) {
        l->class = class;
        l->is_over = is_over;
    }
}

/* Likewise, and it is refused. */
static inline void
latency_refuse(struct latency *l, const void *followed, enum req_class class)
{
    if (unlikely(l->followed == followed) && !l->is_over) {
        l->class = class;
        l->is_over = l->is_refused = true;
    }
}

const char *latency_stage_name(enum latency_stage stage);
