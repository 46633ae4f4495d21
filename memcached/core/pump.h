/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One client's requests within a turn, whatever brings its bytes: a connection or a source of
 * datagrams. The owner alternates session_peek, which finds the next request in `in`, and pump_run,
 * which has it classified, admitted and executed in bounded pieces; it reads, writes and closes
 * as the end of each step says.
 *
 * The worker's thread.
 */
#pragma once

#include "base/buf.h"
#include "base/chain.h"
#include "core/arrival.h"
#include "core/budget.h"
#include "core/coalesce.h"
#include "core/queue.h"
#include "proto/ascii.h"
#include "qos/history.h"
#include "serve/plain.h"
#include "serve/session.h"

struct core;

#define PUMP_SPACE_BYTES BUF_CAPACITY

struct pump {
    struct work work; /* first: the queues hold it by this */
    struct core *core;
    uint32_t out_most;      /* nothing is begun while so much output waits */
    unsigned requests;      /* still allowed in a row */
    uint32_t served;        /* requests, in turns that have ended; wraps */
    uint8_t way;            /* enum pace_way, by which its output is written */
    bool has_budget;        /* for its input and output: the worker's */
    bool answers_together;  /* replies of several requests may leave as one */
    bool is_class_declared; /* the class of the request at the head was declared */
    struct arrival arrival;
    struct coalesced coalesced; /* of what is in `out` */
    struct budget_share share;
    struct history history;
    struct session session;
    struct buf in;
    struct chain out;
};

/* How a step ended. */
enum pump_end {
    PUMP_ON,      /* with a part of a request: go on */
    PUMP_DONE,    /* a request is finished: go on */
    PUMP_REFUSED, /* it was answered without having been run: go on */
    PUMP_FLUSH,   /* the output goes out before the request begins */
    PUMP_DEFER,   /* put it into the queue of pump_lane */
    PUMP_WAIT,    /* it waits for tokens, queued already */
    PUMP_PARKED, /* it waits for another thread (RAN_PARKED): queue it when that is done */
    PUMP_OVER,   /* its replies exceed the budget: pump_take_back, or close */
    PUMP_WATCH,  /* the client becomes a watcher and has a place (watch_enter) */
    PUMP_QUIT,   /* the client asked to be closed */
    PUMP_CLOSE,  /* the request was hostile: close behind the reply */
    PUMP_ABORT,  /* no memory, the reply is incomplete: close */
};

/* p is zero-initialised. The rest of the fields is the owner's to set. */
void pump_init(struct pump *p, struct core *core, const struct work_type *type,
               uint64_t peer);
/* It belongs to another worker from here on; nothing of it is in a queue. */
void pump_join(struct pump *p, struct core *core);
/* Drops its buffers; the session stays. */
void pump_drop(struct pump *p);

/* A request, or its next part, is at the head: session_peek said READY. */
must_check enum pump_end pump_run(struct pump *p, struct turn *turn);
/* After PUMP_OVER. True: the get is answered with an error instead, since its reply was still here
 * in whole. */
must_check bool pump_take_back(struct pump *p);

/* Where plain requests are served from and to without a session's help: a worker's. */
struct pump_space {
    char in[PUMP_SPACE_BYTES + ASCII_CUT_SLACK];
    char out[PUMP_SPACE_BYTES];
};

/* Nothing is under way, and the next bytes may be plain requests. */
must_check bool pump_is_at_rest(const struct pump *p);
/* And no policy has a say in them, if they are of the kind that such a turn is for: small ones, or gets
 * of many keys. */
must_check bool pump_is_plain(const struct pump *p, struct turn *turn);
/* Serves those at the front of space->in[0..len), in its turn. The rest of the input is the
 * caller's to put into `in`. */
struct plain_served pump_serve_plain(struct pump *p, struct pump_space *space, size_t len,
                                     struct turn *turn);
/* The same for gets of many keys, in a turn of bulk ones. If the last one is_open, so is the output, and
 * session_open_get has to be called. */
struct plain_served pump_serve_lines(struct pump *p, struct pump_space *space, size_t len,
                                     struct turn *turn);

/* Before a turn, or what is left of it behind pump_serve_plain: how many requests are allowed in a
 * row. A turn counts those that begin, a pump those that end: one may have begun. And behind it; waits:
 * for the client. */
static inline void
pump_begin_turn(struct pump *p, const struct turn *turn)
{
    p->requests = turn->requests + (turn->has_run && p->work.ticket.is_admitted);
}
void pump_end_turn(struct pump *p, unsigned allowed, bool waits);

/* The queue in which the request at the head, or else the next one, waits. */
static inline enum req_class
pump_lane(const struct pump *p)
{
    return class_lane((enum req_class)p->history.class,
                      p->session.is_long && !p->is_class_declared);
}

/* ---- reading --------------------------------------------------------------------------- */

/* Input has come. True: it was deferred, since what it has asked for lately says that it is not to
 * be read at once. */
must_check bool pump_defers_read(struct pump *p);
/* A turn's input has ended, and not with a request: that may be one read of many for a single
 * one. */
void pump_charge_read(struct pump *p);

/* ---- writing --------------------------------------------------------------------------- */

/* Bytes to write at once. */
size_t pump_piece(const struct pump *p);
/* Will the turn's time do for the next piece of output? pump_fits_another: the clock has just been
 * looked at. */
must_check bool pump_fits_piece(struct pump *p, const struct turn *turn);
must_check bool pump_fits_another(const struct pump *p, const struct turn *turn);
/* After a piece in a turn where the request was read: does the last one go there, too? A deferred turn
 * would write it at once. */
must_check bool pump_ends_here(const struct pump *p, const struct turn *turn);
/* The turn is over: does its finished output wait for the next one? */
must_check bool pump_leaves_output(struct pump *p, const struct turn *turn);
/* Bytes have been sent from the front of `out`. */
void pump_sent(struct pump *p, size_t bytes);
