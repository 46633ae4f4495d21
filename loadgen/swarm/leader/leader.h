/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Runs of a swarm, with the shape of run.h: this process leads agents, and may send a part of
 * the load itself. Rates are shared out by weights; what all have counted and measured is
 * added up exactly. Main thread.
 */
#pragma once

#include "loadgen/run/run.h"

struct leader;

/* Connects to the agents, gives them the options of argv that are theirs too, and waits until
 * all are connected to the servers and have stored their part of the records. As run_open;
 * conf's agent and agents are filled in here. */
must_check enum exit_status
leader_open(struct leader **leader, const struct run_conf *conf, int argc, char **argv);
/* As run_once. A lost agent is dealt with as --on-agent-loss says; the result tells. */
must_check enum exit_status
leader_once(struct leader *leader, const struct run_spec *spec, struct result *result);
/* Also of NULL. */
void leader_close(struct leader **leader);
/* Records stored by all. */
uint64_t leader_loaded(const struct leader *leader);
