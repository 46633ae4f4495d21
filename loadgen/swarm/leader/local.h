/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The part of a swarm's load that its leader sends itself: which classes, the run that sends
 * them, and what of it the ledger was told. Main thread.
 */
#pragma once

#include "loadgen/run/run.h"
#include "loadgen/swarm/message.h"
#include "loadgen/swarm/leader/swarm_run.h"

struct local {
    struct options options; /* what it sends; shallow */
    unsigned first;         /* of options.classes, among all */
    bool is_there;          /* else it sends nothing */
    struct run *run;        /* NULL: not opened, or not there */
    /* What of the run under way was told, one of its classes each. */
    struct tally *told;
    struct tally look;
    uint64_t told_interval;
};

/* The measuring client, when there is one, stands last. Unless there are agents that measure it
 * is this process's only class, and all others are the agents'; else everybody who loads has
 * all of the others, the first `load_classes`. */
void local_init(struct local *own, const struct options *o, unsigned load_classes);
/* Opens the run, if there is one: conf's, as one of so many agents that load. EXIT_VALID, or a
 * line. */
must_check enum exit_status local_open(struct local *own, const struct run_conf *conf,
                                       unsigned agents);
void local_fini(struct local *own);

/* Whether this process sends requests of the class. */
static inline bool
local_has(const struct local *own, unsigned class)
{
    return own->is_there && class >= own->first &&
           class < own->first + own->options.classes_len;
}
static inline enum message_role
local_role(const struct local *own)
{
    return own->first > 0 ? ROLE_MEASURE : ROLE_LOAD;
}
/* How many send the classes of a role, besides the agents: this process is the first. */
static inline unsigned
local_senders(const struct local *own, enum message_role role)
{
    return own->is_there && role == local_role(own) ? 1 : 0;
}

/* ---- with the followers' mutex held ------------------------------------------------- */

/* Nothing of the run that begins was told yet. */
void local_begin(struct local *own);
/* Tells what was counted and measured until `now`, when another interval has gone by. */
void local_tell(struct local *own, const struct swarm_run *swarm, const struct run *run,
                nsec_t now);
/* Tells the rest. */
void local_end(struct local *own, const struct swarm_run *swarm,
               const struct result *result);
