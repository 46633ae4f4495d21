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
struct share_out_parts {
    const struct options *options;
    struct followers *followers;
    const struct local *own;
    struct capacity *capacity; /* this process first */
};

/* What this process has. */
struct share_out {
    double rates[OPTIONS_CLASSES_MAX]; /* one each of its own classes */
    struct reader_slice slice;         /* of traces */
};

/* The spec's rate of a class, or the options'. */
double share_out_rate(const struct options *o, const struct run_spec *spec,
                      unsigned class);
/* Whose share is that of what it can send: not of a client that measures, nor of a trace with
 * times of its own. */
bool share_out_has_capacity(const struct options *o, unsigned class);

/* Into what each follower has for the run, and `own`. EXIT_VALID, or a line: nobody is left, or
 * somebody would get none, which is no rate but as much as goes. */
must_check enum exit_status share_out(const struct share_out_parts *p,
                                      const struct run_spec *spec, struct share_out *own);
/* What each did in a closed loop that is over. False, with a line: one that is still there had
 * no answer. */
must_check bool share_out_learn(const struct share_out_parts *p,
                                const struct run_spec *spec, const struct result *own);
