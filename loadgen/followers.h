/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A leader's connections to its agents, served by a thread of their own: renews leases, keeps
 * clocks aligned, adds up what agents report, notices when one is gone. The main thread
 * gives orders and waits for what becomes of them. All of struct follower but its channel is
 * under the mutex of struct followers; the channels are the thread's once followers_start was called.
 */
#pragma once

#include <pthread.h>

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/swarm/align.h"
#include "loadgen/swarm/chan.h"
#include "loadgen/swarm/endpoint.h"
#include "loadgen/swarm/ledger.h"
#include "loadgen/swarm/message.h"

#define FOLLOWER_SILENCE                                                                 \
    (5 * NSEC_PER_SEC) /* without a word for so long, an agent is lost */

enum follower_state {
    FOLLOWER_OPENING, /* connecting and loading */
    FOLLOWER_READY,
    FOLLOWER_RUNNING,
    FOLLOWER_DONE, /* with the run: ready as well */
    FOLLOWER_LOST, /* `why` says how */
};

struct follower {
    struct endpoint at;
    struct chan chan;
    /* What it is there for: classes it sends, from the first on; servers it asks, those
     * whose numbers are `observer` modulo the number of observers. */
    enum message_role role;
    unsigned first_class, classes, observer, servers;
    uint64_t weight;
    enum follower_state state;
    bool is_wrong;    /* what it sent is proven wrong */
    bool is_told;     /* that it is lost: there was a line */
    bool is_out;      /* lost before the run under way: no part of it */
    bool has_refused; /* what was asked of it: `why` says what it does not allow */
    char why[MESSAGE_TEXT_MAX];
    nsec_t heard_at;
    struct align align;
    unsigned busy;     /* thousandths of a core, at the last heartbeat */
    nsec_t behind_max; /* that its loop was late, of the run */
    uint64_t loaded;   /* records */
    /* Of the run. */
    uint64_t *rates;           /* its share, one each of its classes */
    uint64_t *digests;         /* of its totals, likewise; by its last word */
    struct reader_slice slice; /* of traces */
    nsec_t begin;              /* by its clock */
    double elapsed_s;
    nsec_t start_error;
    bool was_stopped, is_local;
    uint64_t samples; /* of servers' stats */
    struct cost *costs;
    unsigned threads; /* length of costs */
};

struct followers {
    struct follower *all;
    unsigned count, observers;
    struct ledger *ledger;      /* part 0: this process; then the followers */
    nsec_t stats_length;        /* between samples of servers' stats */
    struct server_stats *stats; /* of the run, by those that observe; NULL: nobody does */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* any of them state */
    pthread_t thread;
    int wake_fd;
    bool is_started, wants_end, wants_stop;
    bool wants_start;            /* sends the shot below to those that are ready */
    nsec_t begin;                /* by the leader's clock */
    nsec_t time, warmup, length; /* length: of an interval */
    bool is_fresh;
    nsec_t stamped_at;
};

/* What an agent is told before it begins. */
struct follower_conf {
    char **words; /* with "--" */
    unsigned words_len;
    bool wants_secret;
    unsigned agent,
        agents; /* its number among so many processes that share the records */
    unsigned sender, senders; /* and among those that send the same classes */
};

/* Connects to all agents and has them taken by this leader: those that load have the first
 * so many classes, those that measure the rest. EXIT_VALID, or a line. */
must_check enum exit_status followers_open(struct followers *l, const struct options *o,
                                           unsigned load_classes);
must_check enum exit_status follower_configure(struct follower *k,
                                               const struct follower_conf *conf);
must_check enum exit_status followers_start(struct followers *l);
/* Tells the thread that something was asked for. */
void followers_wake(struct followers *l);
/* Waits, with the mutex held, at most for a moment. */
void followers_wait(struct followers *l);
/* When none is running any more: whether what each has reported in pieces is what it has in
 * whole; those where it is not are lost. With the mutex held. */
void followers_verify(struct followers *l);
/* Whether it sends this class. */
static inline bool
follower_has(const struct follower *k, unsigned class_index)
{
    return class_index >= k->first_class && class_index < k->first_class + k->classes;
}
/* How many are in this state. With the mutex held. */
unsigned followers_in(const struct followers *l, enum follower_state state);
/* Whether all have loaded and told their time. With the mutex held. */
bool followers_are_ready(const struct followers *l);
/* It is of no more use. With the mutex held. */
void follower_lose(struct followers *l, struct follower *k, const char *why);
/* Ends the thread and the connections. */
void followers_close(struct followers *l);
