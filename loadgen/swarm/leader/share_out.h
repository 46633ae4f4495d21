/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Who sends how much: rates and traces are shared out by weights, or by what each can send,
 * among the members of a swarm that are left. Main thread, with the members' mutex held.
 */
#pragma once

#include "base/must.h"
#include "loadgen/run/run.h"
#include "loadgen/swarm/leader/members.h"

/* ---- split ------------------------------------------------------------------------- */

/* Whole numbers shared out by weights so that the shares add up exactly: the method of the
 * largest remainder. Pure. */
#define SPLIT_PARTS_MAX 1024
#define SPLIT_WEIGHT_MAX 1e6

/* shares[0..parts) of `total` by weights >= 0, not all 0. Equal remainders: the first of
 * them first. A weight of 0 gets nothing. */
void split_by_weight(uint64_t total, const double *weights, unsigned parts,
                     uint64_t *shares);

/* ---- share out --------------------------------------------------------------------- */

/* Whose share is that of what it can send: not of a client that measures, nor of a trace with
 * times of its own. */
bool share_out_has_capacity(const struct options *o, unsigned class);

/* Into what each member has for the run. EXIT_VALID, or a line: nobody is left, or somebody
 * would get none, which is no rate but as much as goes. */
must_check enum exit_status share_out(struct members *m, const struct run_spec *spec);
/* What each member achieved a second of each class in a closed loop that is over, by which a rate
 * is shared out so that none is asked for more of its own than the others. False, with a line: one
 * that is still there had no answer. */
must_check bool share_out_learn(struct members *m, const struct run_spec *spec);
