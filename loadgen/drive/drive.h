/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The measuring loop of one thread: sends requests, closed loop (the next one when a reply
 * came), open loop (by a schedule that does not care about replies) or partly open (sessions
 * by a schedule), and records what happens. What it is made of: flow.h (sending), answer.h
 * (receiving) and life.h (the life of a connection). Its thread only; `stop` may be set by
 * any.
 *
 *     begin ....... quiet ..... start ........................ end ........ drained
 *      warm-up, sent  replies     measured                       only replies
 *      not measured   only
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "loadgen/drive/alarms.h"
#include "loadgen/drive/generator.h"
#include "loadgen/drive/cap.h"
#include "loadgen/drive/source_deferred.h"
#include "loadgen/drive/pacing.h"
#include "loadgen/drive/source_replay.h"
#include "loadgen/drive/traffic.h"
#include "loadgen/measure/cost.h"
#include "loadgen/measure/evenness.h"
#include "loadgen/measure/gaps.h"
#include "loadgen/measure/little.h"
#include "loadgen/measure/samples.h"
#include "loadgen/measure/tally.h"
#include "loadgen/wire/lset.h"
#include "loadgen/work/arrival.h"

/* How long replies are waited for after the end. */
#define DRIVE_DRAIN NSEC_PER_SEC

struct drive_conf {
    struct traffic traffic; /* what it points to lives longer */
    unsigned depth;         /* requests on their way, each connection */
    nsec_t spin;      /* open loop: polls, not sleeps, when the next request is so near */
    nsec_t busy_poll; /* and in any case for so long after something came */
    bool gives_way;   /* a real-time thread: never polls for long without a sleep */
    nsec_t timeout;   /* of a reply */
    uint64_t seed;
    unsigned thread, threads; /* of the class, in this process */
    /* Random streams: those of thread 0 of the class, and of each thread one more. */
    unsigned agent, first_thread;
    /* Of all threads of the class, in all processes: each inserts keys of its own. */
    unsigned part, parts;
    enum tally_from from;    /* of which latencies samples are */
    bool by_size;            /* gets are told by the bytes of their values, too */
    const atomic_bool *stop; /* ends the window early */
    struct cap *cap;         /* NULL: there is none */
};

struct drive_window {
    nsec_t begin;
    nsec_t quiet; /* end of the warm-up's requests; start when it has no quiet end */
    nsec_t start, end;
};

/* What the drive knows of a connection, beside its state. */
struct life {
    unsigned resting; /* of its depth: users who think before their next request */
    uint64_t left;    /* requests until it is closed; LIFE_FOREVER: it is not */
    bool has_alarm;   /* down, and to be opened at a time */
    bool was_served;  /* in this run, before it was made anew */
    bool was_in_vain; /* a request was given up because nothing came in time */
};
#define LIFE_FOREVER UINT64_MAX

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
    struct samples *samples; /* without memory of its own when none are wanted */
    struct generator ask;
    struct rng rng;     /* of think times, sessions, connections' lives, backends */
    struct life *lives; /* one each connection of the set, in its order */

    /* ---- flow.c */
    struct arrival arrival;
    nsec_t next;       /* not closed: intended start of the schedule's next request */
    bool could_send;   /* at the last wait it was only time that it waited for */
    nsec_t late_until; /* requests due by then should have been sent when they were */
    struct gaps intended, issued;
    struct little little;
    uint32_t next_tag; /* of it: 0 while its session's size is not drawn */
    struct pacing pacing;
    unsigned outstanding, outstanding_max;
    struct alarms users;    /* closed and open: when they have thought; who: connection */
    struct alarms sessions; /* partly: next request; value: how many are left */
    /* Connections with room, in turn: of all, or of each server when they share the keys.
     * Closed loops without that have no use for them. */
    struct drive_room *rooms;
    unsigned rooms_len, room_cap;
    bool has_rooms;
    struct lconn **dirty; /* with output not flushed */
    unsigned dirty_count;

    struct fetch fetch;   /* what was missed, and waits for its time */
    struct replay replay; /* in place of ask and arrival, when there is a trace */

    /* ---- life.c */
    struct alarms retries; /* when to connect; who: connection */
    struct pacer connects;

    uint64_t moved_requests, moved_bytes; /* since the last look at the cap */
    nsec_t next_tick;
    nsec_t heard_at; /* when events came last */
    nsec_t slept_at; /* when it slept last */
    bool is_timed;
    nsec_t timed_from, idle; /* idle: polled, and nothing came */
    struct cost cost_from;
    struct cost cost;
};

/* False when memory is short. The arguments live longer than d. */
must_check bool drive_init(struct drive *d, const struct drive_conf *conf,
                           struct lset *set, struct tally *tally,
                           struct evenness_log *evenness, struct samples *samples);
void drive_fini(struct drive *d);
/* Runs from window->begin to the end and drains. */
void drive_run(struct drive *d, const struct drive_window *window);

/* ---- for its parts ---------------------------------------------------------------------- */

static inline bool
drive_is_open(const struct drive *d)
{
    return traffic_is_open(&d->conf.traffic);
}

/* Whether something at this time belongs to the measured window. */
static inline bool
drive_measures(const struct drive *d, nsec_t when)
{
    return when >= d->window.start && when < d->window.end;
}

/* Whether a closed loop sends now. */
static inline bool
drive_sends(const struct drive *d, nsec_t now)
{
    return now < d->window.end && (now < d->window.quiet || now >= d->window.start);
}

static inline unsigned
drive_index(const struct drive *d, const struct lconn *c)
{
    return (unsigned)(c - d->set->conns);
}

static inline struct life *
drive_life(const struct drive *d, const struct lconn *c)
{
    return &d->lives[drive_index(d, c)];
}
