/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The measuring loop of one thread: sends requests, closed loop (the next one when a reply
 * came) or open loop (by a schedule that does not care about replies), and records what
 * happens. Its thread only; `stop` may be set by any.
 *
 *     begin ...... start ............................. end ........ drained
 *      warm-up, sent   measured                            only replies
 *      but not measured
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "loadgen/work/arrival.h"
#include "loadgen/drive/ask.h"
#include "loadgen/wire/lset.h"
#include "loadgen/measure/cost.h"
#include "loadgen/measure/evenness.h"
#include "loadgen/measure/tally.h"

/* With late requests dropped: how late is too late. */
#define DRIVE_DROP_AFTER (5 * NSEC_PER_MSEC)
/* How long replies are waited for after the end. */
#define DRIVE_DRAIN NSEC_PER_SEC

/* What a stream of arrivals is one of. */
enum drive_scope {
    DRIVE_TOTAL,  /* all threads share one */
    DRIVE_THREAD, /* one each thread */
    DRIVE_CONN,   /* one each connection */
};

struct drive_conf {
    bool is_open;
    double rate; /* open loop: requests a second, of all threads of the class */
    const struct arrival_law *arrivals;
    enum drive_scope scope;
    unsigned depth; /* requests on their way, each connection */
    bool drops_late;
    nsec_t spin;    /* open loop: polls, not sleeps, when the next request is so near */
    nsec_t timeout; /* of a reply */
    uint64_t seed;
    unsigned thread, threads; /* of the class, in this process */
    /* Random streams: those of thread 0 of the class, and of each thread one more. */
    unsigned agent, first_thread;
    /* Of all threads of the class, in all processes: each inserts keys of its own. */
    unsigned part, parts;
    const atomic_bool *stop; /* ends the window early */
};

struct drive_window {
    nsec_t begin, start, end;
};

/* A ring of room_cap places. */
struct drive_room {
    struct lconn **ring;
    unsigned head, count;
};

struct drive {
    struct drive_conf conf;
    struct drive_window window;
    const struct workload *w;
    struct lset *set;
    struct tally *tally;
    struct evenness_log *evenness;
    struct ask ask;
    struct arrival arrival;
    nsec_t next; /* open loop: intended start of the next request */
    /* Connections with room, in turn: of all, or of each server when they share the keys.
     * Closed loops without that have no use for them. */
    struct drive_room *rooms;
    unsigned rooms_len, room_cap;
    bool has_rooms;
    struct lconn **dirty; /* with output not flushed */
    unsigned dirty_count;
    nsec_t next_tick;
    bool is_timed;
    nsec_t timed_from, idle;
    double cpu_from;
    struct cost cost;
};

/* False when memory is short. The arguments live longer than d. */
must_check bool drive_init(struct drive *d, const struct drive_conf *conf,
                           struct lset *set, struct tally *tally,
                           struct evenness_log *evenness);
void drive_fini(struct drive *d);
/* Runs from window->begin to the end and drains. */
void drive_run(struct drive *d, const struct drive_window *window);
