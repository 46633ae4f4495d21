/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * An agent's side of one connection, in a process of its own. Its main thread speaks with
 * the leader and keeps the lease; job.h has the thread that runs what is asked for.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "loadgen/drive/pacing.h"
#include "loadgen/options/options.h"
#include "loadgen/options/scope.h"
#include "loadgen/swarm/agent/job.h"
#include "loadgen/swarm/seal.h"

/* ---- service ----------------------------------------------------------------------- */

/* What the processes of an agent have in common. Sequentially consistent, and rare, but for
 * the cap. */
struct agent_shared {
    atomic_int owner;     /* process of the leader in charge; 0: none */
    atomic_uint failures; /* wrong proofs in a row */
    struct cap cap;       /* a leader that comes again takes up where it left off */
};

/* How such a process ends. */
enum service_end {
    SERVICE_ENDED = 0,
    SERVICE_WRONG_KEY = 3,
};

struct service_conf {
    const struct options *own;      /* the agent's command line */
    const struct scope_words *host; /* what of it holds for runs as well */
    const struct seal_key *key;
    struct agent_shared *shared;
    nsec_t pause; /* before anything, after wrong proofs */
};

/* Serves the leader at the other end of fd until one of them has enough. */
must_check enum service_end service_run(const struct service_conf *conf, int fd);

/* ---- job config -------------------------------------------------------------------- */

/* What a leader asks an agent for, held against what the agent allows on its own command
 * line. Sentences are static. Main thread of a service. */
/* Options, servers and place of a CONFIG into j, which is new. NULL, or why not. */
must_check const char *job_config_take(struct job *j, const struct service_conf *conf,
                                       const struct frame *f);
/* Whether a run of so many seconds, its warm-up included, at so many requests a second (0:
 * without a limit) is within the limits of `own`. NULL, or why not. */
must_check const char *job_config_check(const struct job *j, const struct options *own,
                                        double seconds, double qps);
