/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Deferred work of a worker, and the turns that it gets. Work is whatever has requests in order: a
 * connection, or a source of datagrams; it waits in the queue of the class of its next request,
 * and which queue is next decides qos/sched.h. The worker's thread only.
 */
#pragma once

#include "base/clock.h"
#include "core/admission.h"
#include "qos/pace.h"
#include "qos/sched.h"

struct core;
struct core_shared;
struct turn;
struct work;

/* One static table for each kind of work. */
struct work_type {
    /* Serves it until it has to wait, or the turn is over. */
    void (*turn)(struct work *work, struct turn *turn);
    /* Closes it if its client is gone; true: it was. NULL: that is never known. */
    bool (*ends_if_gone)(struct work *work);
    /* The address of its client, for statistics. NULL: it has none. */
    void (*describe_peer)(const struct work *work, char *to, size_t size);
};

struct work {
    struct fair_node node; /* first: the queues hold work by this */
    const struct work_type *type;
    uint64_t peer;        /* key of the client's address; 0: none */
    struct ticket ticket; /* of the request at the head */
};

#define TURN_ENDLESS UINT64_MAX

/* How much a turn may do. */
struct turn {
    bool is_inline;      /* right where it was read, not from a queue */
    bool is_alone;       /* likewise, and nothing else was ready then */
    enum req_class lane; /* what is of a later class than this waits in its own queue */
    bool is_served;      /* its first request has waited for a token */
    nsec_t ready_at;     /* when the socket was reported, or the work was queued */
    unsigned requests;   /* allowed in a row */
    bool is_short;       /* they are fewer than -R says */
    unsigned reads;      /* done */
    bool has_run;        /* a request, or a piece of one */
    bool has_guest;      /* one of a class that runs where it is read (qos/pace.h) */
    bool has_long;       /* one that may be long */
    bool is_unbound;     /* a plain one, and core_admits_most said yes when it began */
    nsec_t admitted_at;  /* its first request was, while an SLO looks at each; 0: none */
    nsec_t deadline;     /* of a deferred turn; TURN_ENDLESS: other bounds do */
};

/* It ends after a request. */
static inline void
turn_shorten(struct turn *turn)
{
    turn->is_short |= turn->requests > 1;
    turn->requests = 1;
}

struct queue {
    struct sched sched;
    struct pace pace;
    nsec_t inline_ns; /* served where it was read, at most, before deferred work is */
    unsigned inline_turns; /* while there is deferred work */
};

void queue_init(struct queue *q, const struct core_shared *shared);

/* Waits for its next turn, or for tokens. */
static inline bool
work_is_queued(const struct work *work)
{
    return fair_is_queued(&work->node) || waitq_is_waiting(&work->ticket.wait);
}

/* The work's head request waits behind the other work of the class. */
void queue_put(struct core *k, struct work *work, enum req_class lane);
/* It is closed: it leaves the queue in which it is, also that for tokens. */
void queue_leave(struct core *k, struct work *work);
/* One budget's worth of turns, at least one. */
void queue_serve(struct core *k);

/* Such a turn is over. True: this pass has served enough where it was read, while other work
 * waits; what is ready and not yet read is to wait for the next poll. */
must_check bool queue_end_inline(struct core *k, const struct turn *turn);

/* A deferred turn has no time for a step that takes as long as what was done since the last look
 * at the clock, which may be most of a turn: writing a piece is. Looks at it. */
must_check bool queue_is_turn_over(struct core *k, const struct turn *turn);
/* A piece of a request is done: does the next one wait for the work's next turn? Without classes
 * that is so after each piece of a long one. */
must_check bool queue_ends_piece(struct core *k, const struct turn *turn);
/* A request that may take long is at the head: may it run in this turn? */
must_check bool queue_admits_long(struct turn *turn);
