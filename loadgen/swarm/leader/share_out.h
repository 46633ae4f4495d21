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

/* ---- capacity ---------------------------------------------------------------------- */

/* How much each process of a swarm was seen to send of each class in a closed loop: weights by
 * which a rate is shared out so that none is asked for more of its own than the others.
 * Pure but for memory; under the caller's lock. */
struct capacity {
    unsigned parts, classes;
    double *qps;    /* one a part, class after class */
    bool *is_known; /* of each class */
};

void capacity_init(struct capacity *c, unsigned parts, unsigned classes);
/* Also of one that is all zero. */
void capacity_fini(struct capacity *c);

/* What each part achieved a second, 0 of one that takes no part; for all of them at once. */
void capacity_learn(struct capacity *c, unsigned class_index, const double *qps);
/* Puts what is known in place of those weights that are not 0: so that the largest is 1. Nothing
 * is done when nothing is known. */
void capacity_weigh(const struct capacity *c, unsigned class_index, double *weights);
/* Of all classes that are known; 0: of none. */
double capacity_of(const struct capacity *c, unsigned part);

/* ---- share out --------------------------------------------------------------------- */

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
must_check enum exit_status share_out(struct members *m, const struct options *o,
                                      const struct capacity *c,
                                      const struct run_spec *spec);
/* What each did in a closed loop that is over. False, with a line: one that is still there had
 * no answer. */
must_check bool share_out_learn(const struct members *m, const struct options *o,
                                struct capacity *c, const struct run_spec *spec);
