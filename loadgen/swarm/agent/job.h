/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The thread of an agent that runs what its leader asks for: connect and load, then one run
 * after another. The service's main thread gives the orders and hears of what comes of them
 * by an eventfd; what both use is under the mutex, or belongs to the one whose turn it is.
 */
#pragma once

#include <pthread.h>

#include "base/mbox.h"
#include "loadgen/run/stats_poll.h"
#include "loadgen/run/run.h"
#include "loadgen/run/servers.h"
#include "loadgen/swarm/message.h"

enum job_state {
    JOB_NEW,      /* nothing was asked for yet */
    JOB_OPENING,  /* connecting and loading */
    JOB_RENEWING, /* making connections for the next run */
    JOB_IDLE,     /* ready for a run */
    JOB_RUNNING,
    JOB_DONE,   /* result is there: job_rest */
    JOB_FAILED, /* err is there, and no more comes */
};

struct job {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct mbox wake; /* readable when state or snapshot has changed */
    enum job_state state;
    char err[MESSAGE_TEXT_MAX];
    /* The service's before the first order, the worker's after. */
    enum message_role role;
    struct options options; /* its classes are those that this agent sends */
    struct servers servers;
    unsigned agent, agents, sender, senders; /* as in run.h */
    struct cap *cap;                         /* of the whole agent; NULL: none */
    FILE *said;                              /* what the run prints; no terminal's */
    char *said_text;
    size_t said_len, said_before; /* this run */
    struct run *run;              /* the worker's, but for run_stop */
    /* The worker's while running. */
    struct run_spec spec;
    double *rates;        /* one a class */
    struct result result; /* when done */
    nsec_t start_error;
    bool wants_stop;
    /* What has been counted and measured up to the last look, one a class. */
    struct counters *snapshots;
    uint64_t interval; /* which ends with the last look; 0: there was none in this run */
    /* Of one that observes: what servers have answered in this run. */
    struct stats_poll poll; /* the worker's */
    struct server_stats *samples;
};

void job_init(struct job *j);
/* Options, targets and numbers are filled in: starts the thread. False: there is none. */
must_check bool job_open(struct job *j);
/* Idle, and the spec is filled in: JOB_RUNNING, or JOB_RENEWING, which needs is_fresh only. */
void job_order(struct job *j, enum job_state order);
/* Ends a run under way. */
void job_stop(struct job *j);
enum job_state job_state(struct job *j);
/* From done to idle. */
void job_rest(struct job *j);
