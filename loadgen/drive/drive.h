/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What all parts of a sending thread's loop share: its settings, its window, its connections
 * and what is measured. The parts, each of which knows only those above it here:
 *
 *     drive ......... this                      event_loop .... all of it in turn
 *     sender ........ requests given to connections
 *     source_* ...... which requests, and when (source.h)
 *     receiver ...... replies
 *     reconnect ..... connections lost and opened again
 *
 * Its thread only; `stop` may be set by any.
 *
 *     begin ....... quiet ..... start ........................ end ........ drained
 *      warm-up, sent  replies     measured                       only replies
 *      not measured   only
 */
#pragma once

#include <stdatomic.h>

#include "base/rng.h"
#include "loadgen/drive/generator.h"
#include "loadgen/drive/pacing.h"
#include "loadgen/drive/traffic.h"
#include "loadgen/measure/counters.h"
#include "loadgen/measure/evenness.h"
#include "loadgen/measure/passed.h"
#include "loadgen/measure/samples.h"
#include "loadgen/wire/lset.h"
#include "loadgen/work/streams.h"

/* How long replies are waited for after the end. */
#define DRIVE_DRAIN NSEC_PER_SEC

/* The first reply that was an error, of all threads of a run. All zero: there was none. */
struct drive_refusal {
    atomic_bool is_taken; /* by a thread, which writes the rest */
    const char *server;   /* its name */
    char reply[REPLY_QUOTE];
};

struct drive_conf {
    struct traffic traffic; /* what it points to lives longer */
    unsigned depth;         /* outstanding requests, each connection */
    nsec_t spin; /* open loop: polls, not sleeps, when the next request is this near */
    nsec_t busy_poll; /* and in any case for this long after something came */
    bool gives_way;   /* a real-time thread: never polls for long without a sleep */
    nsec_t timeout;   /* of a reply */
    uint64_t seed;
    unsigned thread, threads; /* of the class, in this process */
    /* Random streams: those of thread 0 of the class, and of each thread one more. */
    unsigned agent, first_thread;
    /* Of all threads of the class, in all processes: a sequence of keys is divided among them. */
    unsigned part, parts;
    /* Of all threads: each has numbers of its own for keys that no other request has. */
    unsigned number, numbers;
    uint64_t above;                /* inserts: above the records of every class */
    enum counters_from from;       /* of which latencies samples are */
    bool by_size;                  /* gets are told by the bytes of their values, too */
    const atomic_bool *stop;       /* ends the window early */
    atomic_uint *over;             /* threads whose requests have ended early; or NULL */
    struct cap *cap;               /* NULL: there is none */
    struct drive_refusal *refusal; /* NULL: is not kept */
};

struct drive_window {
    nsec_t begin;
    nsec_t quiet; /* end of the warm-up's requests; start when it has no quiet end */
    nsec_t start, end;
};

/* What is known of a connection, beside its state. */
struct drive_conn {
    unsigned resting; /* of its depth: users that think before their next request */
    uint64_t left;    /* requests until it is closed; DRIVE_FOREVER: it is not */
    bool has_alarm;   /* down, and to be opened at a time */
    bool was_served;  /* in this run, before it was made anew */
    bool was_in_vain; /* a request was given up because nothing came in time */
};
#define DRIVE_FOREVER UINT64_MAX

struct drive {
    struct drive_conf conf;
    struct drive_window window;
    const struct workload *w;
    struct lset *set;
    struct counters *counters;
    struct evenness_log *evenness;
    struct samples *samples;  /* without memory of its own when none are wanted */
    uint64_t *inserted;       /* of struct drive_into */
    struct rng rng;           /* of think times, sessions, lifetimes, backends */
    struct drive_conn *conns; /* one each connection of the set, in its order */
    struct passed passed;     /* requests of this window */
};

/* Where its results go. */
struct drive_into {
    struct counters *counters;
    struct evenness_log *evenness;
    struct samples *samples;
    uint64_t *inserted; /* keys, by the thread in all runs; NULL: begins anew */
};

/* The arguments live longer than d. */
void drive_init(struct drive *d, const struct drive_conf *conf, struct lset *set,
                const struct drive_into *into);
void drive_fini(struct drive *d);

/* This thread's stream of random numbers for that purpose. */
uint64_t drive_stream(const struct drive_conf *conf, enum stream purpose);
/* The generator of this thread's requests. */
void drive_generator_init(const struct drive *d, struct generator *g);
/* A time by a law in seconds. */
nsec_t drive_draw_time(struct drive *d, const struct dist *law);
/* No connection of that server is up. */
bool drive_is_unreachable(const struct drive *d, unsigned server);

static inline nsec_t
drive_now(const struct drive *d)
{
    return lset_now(d->set);
}

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

/* Adds one to a counter of what happens in the window. */
static inline void
drive_count(const struct drive *d, ctr_t *which, nsec_t when)
{
    ctr_add(which, drive_measures(d, when) ? 1 : 0);
}

/* So many errors. Those of the warm-up count, too, but for intervals of the window. */
static inline void
drive_error(const struct drive *d, enum counters_error what, uint64_t n, nsec_t now)
{
    ctr_add(&d->counters->errors[what], n);
    ctr_add(&d->counters->failed, now >= d->window.start ? n : 0);
}

/* A request meant for `intended` will not be answered: `which` counts why. */
static inline void
drive_give_up(const struct drive *d, ctr_t *which, nsec_t intended, nsec_t now)
{
    if (drive_measures(d, intended)) {
        counters_censored(d->counters, which, now > intended ? now - intended : 0);
    }
}

/* The same of one that is not sent, for as long as the window lasts. */
static inline void
drive_pass_over(struct drive *d, ctr_t *which, nsec_t intended)
{
    if (drive_measures(d, intended)) {
        ctr_add(which, 1);
        passed_add(&d->passed, intended);
    }
}

/* Whether a closed loop sends now; a schedule says so itself. */
static inline bool
drive_sends(const struct drive *d, nsec_t now)
{
    return now < d->window.end &&
           (now < d->window.quiet || now >= d->window.start || drive_is_open(d));
}

static inline struct drive_conn *
drive_conn_of(const struct drive *d, const struct lconn *c)
{
    return &d->conns[c->index];
}
