/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A leader's connections to its agents, served by a thread of their own: renews leases, keeps
 * clocks aligned, adds up what agents report, notices when one is gone. The main thread
 * gives orders and waits for what becomes of them.
 */
#pragma once

#include <pthread.h>

#include "loadgen/swarm/leader/member.h"

struct members {
    struct member *all; /* the leader first, then the agents */
    unsigned count;
    struct swarm_run run; /* the one under way, or the last one */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* any of them state */
    pthread_t thread;
    int wake_fd;
    bool is_started, wants_end, wants_stop;
    bool wants_start; /* sends the run to those that are ready */
    nsec_t stamped_at;
};

/* Connects to all agents and has them taken by this leader (member_init). EXIT_VALID, or a
 * line. */
must_check enum exit_status members_open(struct members *l, const struct options *o,
                                         unsigned load_classes);
must_check enum exit_status members_start(struct members *l);
/* Tells the thread that something was asked for. */
void members_wake(struct members *l);
/* Waits, with the mutex held, at most for a moment. */
void members_wait(struct members *l);
/* Those that were lost in the last run are no part of the next one: which is to tell of them as
 * if they were, or is over. */
void members_miss_lost(struct members *l, bool are_missed);
/* Records stored by all, which are ready. */
uint64_t members_loaded(const struct members *l);

/* ---- with the mutex held -------------------------------------------------------------- */

/* How many are in this state. */
unsigned members_in(const struct members *l, enum member_state state);
/* Whether all agents have loaded and told their time. */
bool members_are_ready(const struct members *l);
/* The longest window that a member had in the run, of those that had a part in it, in seconds;
 * and when that ended. */
double members_longest(const struct members *l);
nsec_t members_ended_at(const struct members *l);
/* The first agent that will not take its part in the run; NULL: all do. That is no loss: it would
 * refuse the next one, too. */
const struct member *members_refuser(const struct members *l);
/* A line for each agent that is lost, once. */
void members_tell_losses(struct members *l);

/* Ends the thread and the connections; without the mutex. */
void members_close(struct members *l);
