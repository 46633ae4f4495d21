/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a leader asks an agent for, held against what the agent allows on its own command
 * line. Sentences are static. Main thread of a service.
 */
#pragma once

#include "loadgen/swarm/agent/service.h"
#include "loadgen/swarm/agent/job.h"

/* Options, servers and place of a CONFIG into j, which is new. NULL, or why not. */
must_check const char *job_config_take(struct job *j, const struct service_conf *conf,
                                       const struct frame *f);
/* Whether a run of so many seconds, its warm-up included, at so many requests a second (0:
 * without a limit) is within the limits of `own`. NULL, or why not. */
must_check const char *job_config_check(const struct job *j, const struct options *own,
                                        double seconds, double qps);
