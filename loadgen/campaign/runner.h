/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What makes the runs of a campaign: this process alone (run.h), or a swarm that it leads
 * (leader.h). Main thread.
 */
#pragma once

#include "loadgen/run/run.h"
#include "loadgen/search/goal.h"
#include "loadgen/search/search.h"

/* ---- runner ------------------------------------------------------------------------ */

struct leader;

struct runner {
    const struct run_conf *conf;
    struct run *run; /* one of these is NULL */
    struct leader *leader;
};

/* As run_open; argv is what agents are sent of. */
must_check enum exit_status runner_open(struct runner *r, const struct run_conf *conf,
                                        int argc, char **argv);
/* As run_once; the result also knows what servers evicted when they had to know its keys. */
must_check enum exit_status runner_once(struct runner *r, const struct run_spec *spec,
                                        struct result *result);
/* Records stored by runner_open. */
uint64_t runner_loaded(const struct runner *r);
void runner_close(struct runner *r);

/* ---- warmup ------------------------------------------------------------------------ */

/* A warm-up as long as it takes: runs of the same load, not reported, until MSER-5
 * (measure/steady.h) finds that the first half of them at most is to be cut off. The runs
 * that follow begin warm. Main thread. */
/* Fills in `result`. EXIT_INVALID with a line when it was interrupted, another status when a run
 * failed. `rates` as of a spec. */
must_check enum exit_status warmup_run(struct runner *runner, const double *rates,
                                       struct result_warmup *result);

/* ---- outcome ----------------------------------------------------------------------- */

/* What searches and scans take from a run that has taken so many seconds: how it did against a
 * goal. */
struct search_outcome outcome_of_run(const struct result *r, const struct options *o,
                                     const struct goal *g, double seconds);
