/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A leader's connections to its agents, served by a thread of their own: renews leases, keeps
 * clocks aligned, adds up what agents report, notices when one is gone. The main thread
 * gives orders and waits for what becomes of them.
 */
#pragma once

#include <pthread.h>

#include "loadgen/swarm/leader/follower.h"
#include "loadgen/options/options.h"
#include "loadgen/swarm/leader/swarm_run.h"

struct followers {
    struct follower *all;
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

/* Connects to all agents and has them taken by this leader: those that load have the first
 * so many classes, those that measure the rest. EXIT_VALID, or a line. */
must_check enum exit_status followers_open(struct followers *l, const struct options *o,
                                           unsigned load_classes);
must_check enum exit_status followers_start(struct followers *l);
/* Tells the thread that something was asked for. */
void followers_wake(struct followers *l);
/* Waits, with the mutex held, at most for a moment. */
void followers_wait(struct followers *l);
/* How many are in this state. With the mutex held. */
unsigned followers_in(const struct followers *l, enum follower_state state);
/* Whether all have loaded and told their time. With the mutex held. */
bool followers_are_ready(const struct followers *l);
/* The longest window that a follower had in the run, of those that had a part in it; in
 * seconds. With the mutex held. */
double followers_longest(const struct followers *l);
/* Ends the thread and the connections. */
void followers_close(struct followers *l);
