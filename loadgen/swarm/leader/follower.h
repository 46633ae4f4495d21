/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One agent, as its leader knows it: the connection to it, what it was told and what it has
 * said. What it says is believed only as far as it can be true; else it is lost. Under the
 * mutex of struct followers, but for its channel, which is the thread's once that has started.
 */
#pragma once

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/swarm/leader/align.h"
#include "loadgen/swarm/chan.h"
#include "loadgen/swarm/endpoint.h"
#include "loadgen/swarm/message.h"
#include "loadgen/swarm/leader/swarm_run.h"

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
    struct swarm_run *run;
    unsigned part; /* its number in the ledger */
    struct endpoint at;
    struct chan chan;
    /* What it is there for: classes it sends, from the first on; servers it asks, those
     * whose numbers are `observer` modulo the number of observers. */
    enum message_role role;
    unsigned first_class, classes, observer, servers;
    uint64_t weight;
    enum follower_state state;
    bool is_wrong;  /* what it sent is proven wrong */
    bool is_told;   /* that it is lost: there was a line */
    bool is_out;    /* lost before the run under way: no part of it */
    bool is_missed; /* ... but what went just before it was for it: it is told as lost */
    bool has_refused; /* what was asked of it: `why` says what it does not allow */
    char why[MESSAGE_TEXT_MAX];
    nsec_t heard_at;
    struct align align;
    unsigned busy;     /* thousandths of a core, at the last heartbeat */
    nsec_t behind_max; /* that its loop was late, of the run */
    uint64_t loaded;   /* records */
    /* Of the run under way, or the last one. */
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

/* What an agent is told before it begins. */
struct follower_conf {
    char **words; /* with "--" */
    unsigned words_len;
    bool wants_secret;
    unsigned agent,
        agents; /* its number among so many processes that share the records */
    unsigned sender, senders; /* and among those that send the same classes */
};

/* Those that load have the first so many classes, those that measure the rest, those that
 * observe none. False when memory is short; follower_fini takes what there is. */
must_check bool follower_init(struct follower *k, struct swarm_run *run, unsigned part,
                              const struct options *o, unsigned load_classes);
void follower_fini(struct follower *k);
/* Connects, and has it taken by this leader. EXIT_VALID, or a line. */
must_check enum exit_status follower_open(struct follower *k, const struct options *o,
                                          const char *text, const struct seal_key *key);
must_check enum exit_status follower_configure(struct follower *k,
                                               const struct follower_conf *conf);

/* Takes what has come, and sends what waits; `events` are poll's. */
void follower_serve(struct follower *k, short events);
/* Asks for its time, and renews its lease. */
void follower_ask_time(struct follower *k);
/* Orders the run, and an early end of it. */
void follower_start(struct follower *k);
void follower_stop(struct follower *k);
/* Its run is over: whether what it has reported in pieces is what it has in whole; else it is
 * lost. */
void follower_verify(struct follower *k);
/* It is of no more use. */
void follower_lose(struct follower *k, const char *why);

/* It has loaded and told its time. */
must_check bool follower_is_ready(const struct follower *k);
/* Whether it sends this class. */
static inline bool
follower_has(const struct follower *k, unsigned class_index)
{
    return class_index >= k->first_class && class_index < k->first_class + k->classes;
}
