/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Who sends how much: rates and traces are shared out by weights, or by what each can send,
 * among the members of a swarm that are left. Main thread, with the members' mutex held.
 */
#pragma once

#include "loadgen/run/run.h"
#include "loadgen/swarm/leader/capacity.h"
#include "loadgen/swarm/leader/members.h"

/* Whose share is that of what it can send: not of a client that measures, nor of a trace with
 * times of its own. */
bool share_out_has_capacity(const struct options *o, unsigned class);

/* Into what each member has for the run. EXIT_VALID, or a line: nobody is left, or somebody
 * would get none, which is no rate but as much as goes. */
must_check enum exit_status share_out(struct members *m, const struct options *o,
                                      const struct capacity *c,
                                      const struct run_spec *spec);
/* What each did in a closed loop that is over. False, with a line: one that is still there had
 * no answer. */
must_check bool share_out_learn(const struct members *m, const struct options *o,
                                struct capacity *c, const struct run_spec *spec);
