/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Runs: run_open starts the threads of every class, connects and loads; run_once lets them
 * send for a while and sums up, as often as wanted, connections and records kept;
 * run_close ends the threads. One thread calls all three, and is told what happens meanwhile.
 *
 *     run_open -> run_once -> run_once -> ... -> run_close
 */
#pragma once

#include <signal.h>

#include "base/clock.h"
#include "loadgen/drive/drive.h"
#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/wire/target.h"

struct run;

/* SIGINT and SIGTERM, which end a run early. */
void run_signals(sigset_t *signals);

/* Called while threads send (run_spec), with the window and the time. False ends
 * the run early, which does not make it a bad one. */
typedef bool run_tick(void *arg, const struct run *run, nsec_t now);

/* What it points to lives longer than the run. */
struct run_conf {
    const struct options *options;
    const struct target *targets; /* one for each of options->servers */
    struct ltls *tls;             /* of targets that speak TLS */
    const struct shard *shard;    /* how they share the keys; NULL: each has all */
    /* This process is number `agent` of `agents` that share records, keys and seed; both 0:
     * it is alone. */
    unsigned agent, agents;
    /* Likewise among those alone that send what this one does. */
    unsigned sender, senders;
    struct cap *cap; /* what all runs together may move; NULL: any */
    bool has_progress;
    FILE *err;      /* progress and failures */
    run_tick *tick; /* NULL: none */
    void *tick_arg;
};

/* What one run does otherwise than the options say. All zero: nothing. */
struct run_spec {
    const double *rates; /* one a class, a second; 0: closed loop. NULL: the options' */
    double time_s;       /* 0: the options' */
    double warmup_s;     /* 0: the options', below 0: none */
    nsec_t begin;        /* when to begin, by clock_now; 0: at once */
    bool is_fresh;       /* all connections are made anew before (run_renew) */
    bool is_probe;       /* its result only prepares the runs that follow */
    bool stops_early;    /* ends sooner, as soon as the options' `until` is met */
    /* The tick is called at multiples of it from the start of the window; 0: about once a
     * second from the beginning. In a swarm also now and then before the window. */
    nsec_t tick_length;
    struct reader_slice slice; /* of traces, in a swarm */
};

/* What a spec says, else the options. */
double run_spec_rate(const struct options *o, const struct run_spec *spec,
                     unsigned class);
double run_spec_time(const struct options *o, const struct run_spec *spec);
double run_spec_warmup(const struct options *o, const struct run_spec *spec);

/* EXIT_VALID, or a line was printed and the exit status says of what kind (no run_close
 * then). With load_only the records are stored, run_loaded says how many. */
must_check enum exit_status run_open(struct run **run, const struct run_conf *conf);

/* EXIT_VALID when the run came to its end, with `result` filled in (result_fini) whether or
 * not it is worth anything; else a line was printed. SIGINT and SIGTERM end it early
 * (result->was_interrupted). Connections that were lost or left behind with requests are made
 * anew before the next one; replies are waited for until nothing of it is on the way. */
must_check enum exit_status run_once(struct run *run, const struct run_spec *spec,
                                     struct result *result);
/* What run_once begins with, which may take long: connections that are not fit for a run, or all, are
 * made anew. A caller that is to begin at a time comes here before it chooses that. */
must_check enum exit_status run_renew(struct run *run, bool all);
/* Ends the run under way early, or else the next one, as a tick that answers false does. Any
 * thread. */
void run_stop(struct run *run);
/* Between runs: the next ones are not to be ended by a run_stop before. */
void run_rearm(struct run *run);
/* Also of NULL. */
void run_close(struct run **run);

/* What the options say of the result of a class, whatever came of it, */
void run_describe_class(struct result *result, const struct options *o,
                        const struct lclass *c);
/* and of the sum of all, which are there. */
void run_describe_sum(struct result *result, const struct options *o);

/* Records stored by run_open. */
uint64_t run_loaded(const struct run *run);

/* For the tick: of the run under way, its window (begin, start of what is measured, end), and
 * what class `c` has counted and measured so far, added to `sum`. */
const struct drive_window *run_window(const struct run *run);
void run_sum(const struct run *run, unsigned c, struct counters *sum);
