/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Where the requests of a thread come from: one source says which are sent when, on which
 * connection. The loop calls its functions and does what follows: flushes what was given out,
 * receives, connects. Each gives requests to connections with room (sender.h) and calls
 * nothing else of the loop. Its thread only.
 *
 *     source_closed ....... the next request when a reply came
 *     source_open ......... by a schedule: requests, or sessions (partly open)
 *     source_replay ....... those of a trace, at their times or closed
 *     source_deferred ..... beside one of these: what was missed, after its time
 */
#pragma once

#include "loadgen/drive/alarms.h"
#include "loadgen/drive/sender.h"

/* Keys whose value is fetched, of each thread: others are not stored, and counted. */
#define SOURCE_DEFERRED_MAX 65536
/* Pauses before a key that another client is to store is asked for again: the first, each twice
 * the one before, and the longest; after so many the application goes without. */
#define SOURCE_PAUSE NSEC_PER_MSEC
#define SOURCE_PAUSE_MAX (100 * NSEC_PER_MSEC)
#define SOURCE_TRIES 10

struct source;

/* Where NULL is allowed, it means that nothing is to be done. */
struct source_ops {
    /* The window begins. NULL allowed. */
    void (*begin)(struct source *);
    /* When send_due is to be called again, events aside; ALARMS_NEVER. */
    nsec_t (*next_due)(struct source *);
    /* Gives out what is due: the connections are dirty then. */
    void (*send_due)(struct source *, nsec_t now);
    /* An event came from c, which has nothing to do first: gives out what may go now, to c
     * or, dirty then, to others. */
    void (*push)(struct source *, struct lconn *c, nsec_t now);
    /* c was flushed and may have room again; gives out nothing yet. NULL allowed. */
    void (*room)(struct source *, struct lconn *c);
    /* A request of c is answered, whatever with, or given up: its user thinks, its session
     * goes on. NULL allowed, as for those below. */
    void (*answered)(struct source *, struct lconn *c, const struct request_op *op,
                     nsec_t now);
    /* A request was lost with its connection: its session goes on. */
    void (*gone)(struct source *, const struct request_op *op, nsec_t now);
    void (*up)(struct source *, const struct lconn *c);
    /* c is down: it was lost, or could not be made. */
    void (*lost)(struct source *, const struct lconn *c, nsec_t now);
    /* Nothing is left to be sent or to be answered: the window ends. NULL: it never is so. */
    bool (*is_over)(struct source *, nsec_t now);
    /* After the window: counts what was due and comes only now. True: more may come. */
    bool (*count_left)(struct source *, nsec_t now);
    /* The run is over: what was due and could not be sent. */
    void (*end)(struct source *, nsec_t now);
    void (*destroy)(struct source *);
};

struct source {
    const struct source_ops *ops;
    struct drive *d;
    struct sender *sender;
    struct source *next; /* the other one that the loop asks; NULL: none */
    /* what push gives out goes before the next event is looked at */
    bool flushes_at_once;
    bool is_deaf; /* its `answered` would do nothing in this run: no user of it thinks */
};

/* One each source file. */
struct source *source_closed_create(struct drive *d, struct sender *sender);
struct source *source_open_create(struct drive *d, struct sender *sender);
struct source *source_replay_create(struct drive *d, struct sender *sender);
struct source *source_deferred_create(struct drive *d, struct sender *sender);

/* The pause before a key is asked for again after so many tries. */
static inline nsec_t
source_pause(unsigned tries)
{
    return clock_doubled(SOURCE_PAUSE, tries, SOURCE_PAUSE_MAX);
}
