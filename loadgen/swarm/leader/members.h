/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A leader's connections to its agents, served by a thread of their own: renews leases, keeps
 * clocks aligned, adds up what agents report, notices when one is gone. The main thread
 * gives orders and waits for what becomes of them.
 */
#pragma once

#include <pthread.h>

#include "base/mbox.h"
#include "loadgen/measure/result.h"
#include "loadgen/measure/server_stats.h"
#include "loadgen/options/options.h"
#include "loadgen/swarm/chan.h"
#include "loadgen/swarm/endpoint.h"
#include "loadgen/swarm/leader/align.h"
#include "loadgen/swarm/leader/ledger.h"
#include "loadgen/swarm/message.h"

/* ---- member ------------------------------------------------------------------------ */

/* A process of a swarm, as its leader knows it: what it sends, and what came of it. The first one
 * is the leader itself, all others are agents: the connection to it, what it was told and what it
 * has said, which is believed only as far as it can be true; else it is lost. Under the mutex of
 * struct members, but for its channel, which is the thread's once that has started. */
/* Without a word for so long, an agent is lost; the first is longer: it looks for the addresses of
 * servers before, which a name server may make it wait for. */
#define MEMBER_STAMPS_FIRST 8 /* exchanges at once, before the first start */
#define MEMBER_SILENCE (5 * NSEC_PER_SEC)
#define MEMBER_SILENCE_FIRST (60 * NSEC_PER_SEC)

/* A run as the leader orders it, and where goes what all report of it. */
struct swarm_run {
    nsec_t begin; /* by the leader's clock */
    nsec_t warmup, time;
    nsec_t length;              /* of an interval */
    bool is_fresh;              /* all connections are made anew before */
    struct ledger *ledger;      /* one part for each process */
    unsigned observers;         /* agents that ask servers for their stats, */
    nsec_t stats_length;        /* so often, */
    struct server_stats *stats; /* and what they heard; NULL: nobody asks */
};

enum member_state {
    MEMBER_OPENING, /* connecting, and loading before the first run */
    MEMBER_READY,
    MEMBER_RUNNING,
    MEMBER_DONE, /* with the run: ready as well */
    MEMBER_LOST, /* `why` says how */
};

struct member {
    struct swarm_run *run;
    unsigned part; /* its number, also in the ledger; 0: the leader */
    struct target at;
    struct chan chan;
    /* What it is there for: classes it sends, from the first on, none where the leader only
     * leads; servers it asks, those whose numbers are `observer` modulo that of observers. */
    enum message_role role;
    unsigned first_class, classes, observer, servers;
    uint64_t weight;
    enum member_state state;
    bool is_wrong;    /* what it sent is proven wrong */
    bool is_reported; /* that it is lost: there was a line */
    bool is_out;      /* lost before the run under way: no part of it */
    bool is_told;     /* its loss is in the result of a run */
    bool has_refused; /* what was asked of it: `why` says what it does not allow */
    char why[MESSAGE_TEXT_MAX];
    nsec_t heard_at;
    bool is_asked, has_answered; /* a STAMP was sent, STAMPS have come */
    struct align align;
    nsec_t behind_max; /* that its loop was late, of the run */
    uint64_t loaded;   /* records */
    /* Of the run under way, or the last one. */
    uint64_t *rates;           /* its share, one each of its classes */
    uint64_t *digests;         /* of its totals, likewise; by its last word */
    struct reader_slice slice; /* of traces */
    nsec_t begin;              /* by its clock */
    double elapsed_s;
    nsec_t start_error;
    bool is_local;
    bool has_steal; /* it tells the share of its CPUs' time that went to others */
    double steal;
    uint64_t samples; /* of servers' stats */
    struct cost *costs;
    unsigned threads; /* length of costs */
    /* requests a second in a closed loop, one each class; 0: not known */
    double *capacities;
};

/* What an agent is told before it begins. */
struct member_conf {
    char **words; /* with "--" */
    unsigned words_len;
    bool wants_secret;
    /* Its number among so many processes that share the records. */
    unsigned agent, agents;
    unsigned sender, senders; /* and among those that send the same classes */
};

/* Those that load have the first so many classes, those that measure the rest, those that
 * observe none; the leader measures unless there are agents that do. */
void member_init(struct member *k, struct swarm_run *run, unsigned part,
                 const struct options *o, unsigned load_classes);
void member_fini(struct member *k);
/* Connects, and has it taken by this leader. EXIT_VALID, or a line. */
must_check enum exit_status member_open(struct member *k, const struct options *o,
                                        const char *text, const struct seal_key *key);
must_check enum exit_status member_configure(struct member *k,
                                             const struct member_conf *conf);

/* The leader's own part of a run is over, with this result; NULL: it begins. */
void member_set_own(struct member *k, const struct result *own);

/* ---- agents ------------------------------------------------------------------------- */

/* Takes what has come, and sends what waits; `events` are poll's. */
void member_serve(struct member *k, short events);
/* Asks for its time, and renews its lease. */
void member_ask_time(struct member *k);
/* A run is shared out: nothing has come of it yet. */
void member_begin(struct member *k);
/* Has connections made for the next run: it is opening then, if it sends anything. */
void member_renew(struct member *k);
/* Orders the run, and an early end of it. */
void member_start(struct member *k);
void member_stop(struct member *k);
/* Its run is over: whether what it has reported in pieces is what it has in whole; else it is
 * lost. */
void member_verify(struct member *k);
/* It is of no more use. */
void member_lose(struct member *k, const char *why);

/* ---- all ---------------------------------------------------------------------------- */

/* Whether it sends this class; also in the run under way. */
static inline bool
member_has(const struct member *k, unsigned class_index)
{
    return class_index >= k->first_class && class_index < k->first_class + k->classes;
}
static inline bool
member_sends(const struct member *k, unsigned class_index)
{
    return !k->is_out && member_has(k, class_index);
}

/* ---- members ----------------------------------------------------------------------- */

struct members {
    const struct options *options;
    bool knows_capacity[OPTIONS_CLASSES_MAX]; /* of each class */
    struct member *all;                       /* the leader first, then the agents */
    unsigned count;
    struct swarm_run run; /* the one under way, or the last one */
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* any of them state */
    pthread_t thread;
    struct mbox wake; /* of the thread, when something is asked for */
    bool is_started, wants_end, wants_stop;
    bool wants_renew; /* sends this, and the run, to those that are ready */
    bool wants_start;
    nsec_t stamped_at;
};

/* Connects to all agents and has them taken by this leader (member_init). EXIT_VALID, or a
 * line. The signals are blocked; one of them meanwhile ends the process, with a line. */
must_check enum exit_status members_open(struct members *l, const struct options *o,
                                         unsigned load_classes, const sigset_t *signals);
must_check enum exit_status members_start(struct members *l);
/* Waits, with the mutex held, at most for a moment. */
void members_wait(struct members *l);
/* The losses so far are in a result: later ones do not repeat them. */
void members_told(struct members *l);

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

/* The result of a swarm: the sum of what its processes have counted and measured, and, for each
 * of them, what tells whether it kept up. */
void combine_results(struct result *r, const struct members *l, bool was_interrupted,
                     bool accepts_loss);
