/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Who sends how much: rates and traces are shared out by weights, or by what each can send,
 * among the leader and those of its agents that are left. Main thread, with the followers'
 * mutex held.
 */
#pragma once

#include "loadgen/swarm/leader/followers.h"
#include "loadgen/swarm/leader/local.h"
#include "loadgen/swarm/leader/capacity.h"

/* All of a swarm. */
struct leader_split_parts {
    const struct options *options;
    struct followers *followers;
    const struct leader_own *own;
    struct capacity *capacity; /* this process first */
};

/* What this process has. */
struct leader_split {
    double rates[OPTIONS_CLASSES_MAX]; /* one each of its own classes */
    struct reader_slice slice;         /* of traces */
};

/* The shot's rate of a class, or the options'. */
double leader_split_rate(const struct options *o, const struct run_shot *shot,
                         unsigned class);
/* Whose share is that of what it can send: not of a client that measures, nor of a trace with
 * times of its own. */
bool leader_split_has_capacity(const struct options *o, unsigned class);

/* Into what each follower has for the run, and `own`. EXIT_VALID, or a line: nobody is left, or
 * somebody would get none, which is no rate but as much as goes. */
must_check enum exit_status leader_split(const struct leader_split_parts *p,
                                         const struct run_shot *shot,
                                         struct leader_split *own);
/* What each did in a closed loop that is over. False, with a line: one that is still there had
 * no answer. */
must_check bool leader_split_learn(const struct leader_split_parts *p,
                                   const struct run_shot *shot, const struct result *own);
