/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The part of a swarm's load that its leader sends itself: the run that sends its classes, and
 * what of it the ledger was told. Main thread.
 */
#pragma once

#include "loadgen/run/run.h"
#include "loadgen/swarm/leader/members.h"

struct local {
    struct options options;            /* what it sends; shallow */
    double rates[OPTIONS_CLASSES_MAX]; /* of the run under way, one each of its classes */
    struct run *run;                   /* NULL: not opened, or it sends nothing */
    /* What of the run under way was told, one of its classes each. */
    struct counters *reported;
    struct counters look;
    uint64_t reported_interval;
};

/* The options with the classes of `self`, or, where it has none, those that it would have. */
void local_init(struct local *l, const struct options *o, const struct member *self,
                unsigned load_classes);
/* Opens the run, if there is one: as conf says. EXIT_VALID, or a line. */
must_check enum exit_status local_open(struct local *l, const struct run_conf *conf);
void local_fini(struct local *l);

/* ---- with the members' mutex held ---------------------------------------------------- */

/* A run begins, with what `self` has of it: what is to be run, as `spec` but for that. Nothing of
 * it was told yet. */
struct run_spec local_begin(struct local *l, struct member *self,
                            const struct run_spec *spec);
/* Tells what was counted and measured until `now`, when another interval has gone by. */
void local_tell(struct local *l, const struct member *self, const struct run *run,
                nsec_t now);
/* Tells the rest. */
void local_end(struct local *l, struct member *self, const struct result *result);
