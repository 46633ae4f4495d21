/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the files of a run share: run.c opens and closes it, assignment.c says what each
 * thread has to do, await.c waits for the end, collect.c sums up. The thread that called
 * run_open owns all of it.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "loadgen/drive/lthread.h"
#include "loadgen/measure/cost.h"
#include "loadgen/run/progress.h"
#include "loadgen/run/run.h"
#include "loadgen/run/stats_poll.h"
#include "loadgen/work/workload.h"
#include "place/pin.h"

/* ---- sampler.c -------------------------------------------------------------------- */

/* Looks at the counters of a run under way at equal distances, a series for each class and
 * one for all. The thread that runs the run. */
#define SAMPLER_LENGTH_MAX NSEC_PER_SEC

struct sampler {
    const struct counters **counters; /* of all threads, those of a class in a row */
    unsigned counters_len;
    unsigned *first; /* of each class, and their number */
    unsigned classes;
    struct series **series;          /* one a class, then that of all */
    nsec_t row_length, length, next; /* when the next look is wanted */
    struct drive_window window;
};

/* Room for `classes` classes with `threads` threads in all. */
void sampler_init(struct sampler *o, unsigned classes, unsigned threads);
void sampler_fini(struct sampler *o);
/* One for each thread, class after class; they live longer than o. */
void sampler_add(struct sampler *o, unsigned class_index,
                 const struct counters *counters);

/* Before a run, and before its time is fixed, for this takes milliseconds; a row for the
 * report each row_length, with its latencies when it `keeps` them. */
void sampler_prepare(struct sampler *o, nsec_t row_length, bool keeps);
/* The run is this one; its end may come sooner: looks are no further apart than `longest`. */
void sampler_start(struct sampler *o, const struct drive_window *window, nsec_t longest);
/* Looks if it is time. */
void sampler_look(struct sampler *o, nsec_t now);
/* When all threads have ended: of each class, and (with their number) of all, whose window ended
 * then. */
void sampler_end(struct sampler *o, unsigned index, nsec_t end);

/* Of a class, or (with their number) of all; the caller owns it then, and there is another
 * after the next sampler_prepare. */
struct series *sampler_take(struct sampler *o, unsigned index);

/* ---- stopping ---------------------------------------------------------------------- */

/* Whether a run with --until knows enough to end. Its thread only. */
#define STOPPING_LOOK (50 * NSEC_PER_MSEC) /* between looks, for such a run */

struct stopping {
    nsec_t asked; /* the look that is next after the one it was asked for last */
    bool was_sure;
    bool is_reached;
};

/* After each look; all zero at the begin. Sure twice in a row: one look may be lucky. */
bool stopping_is_reached(struct stopping *s, const struct options *o,
                         const struct sampler *w);
/* Of all that was measured, the last replies too; r->until is not NULL. */
bool stopping_is_met(const struct result *r);

/* ---- trace_feed.c ----------------------------------------------------------------- */

/* The trace of a class at work: its reader, and for each thread the workload whose keys are
 * those of its book. A class without a trace has an empty one. The main thread's. */
struct trace_feed {
    struct reader *reader;      /* NULL: no trace */
    struct workload *workloads; /* one each thread; all but their books is w's */
};

/* All zero before; `c` and `w` live longer. NULL, or a sentence (err). */
must_check const char *trace_feed_open(struct trace_feed *t, const struct lclass *c,
                                       const struct workload *w, unsigned threads,
                                       char err[TRACE_ERR_MAX]);
void trace_feed_close(struct trace_feed *t);

/* Whether both store the same keys, with values of the same length. */
bool trace_feed_has_same_keys(const struct lclass *a, const struct lclass *b);

/* What was to be stored is: no thread takes anything any more. Tells on `log` what was not stored
 * and, when no replay comes that would, what was met. NULL, or a sentence. */
must_check const char *trace_feed_end_load(struct trace_feed *t, const struct lclass *c,
                                           bool has_replay, FILE *log);

/* Whether it has been read as far ahead as can be. */
bool trace_feed_is_primed(const struct trace_feed *t);
/* The run is over: tells on `log` what was met. NULL, or a sentence. */
must_check const char *trace_feed_stop(struct trace_feed *t, const struct lclass *c,
                                       FILE *log);

/* ---- run.c ------------------------------------------------------------------------- */

/* One class at work. Threads read it. */
struct run_class {
    const struct lclass *conf;
    struct workload workload;
    struct lconn_auth auth;
    struct traffic traffic;  /* of the last run; threads share its laws */
    unsigned first, threads; /* of all threads of the run */
    struct trace_feed feed;
    bool loads;  /* stores its records: no class before has done it */
    bool stocks; /* ... which are what its trace asks for */
};

struct run {
    struct run_conf conf;
    const struct options *o;
    struct rendezvous orders;
    struct run_class *classes;
    struct lthread *threads;
    unsigned threads_len, started;
    uint64_t records;   /* to be stored, on all servers */
    unsigned src_ports; /* local port of the next connection; 0: any */
    struct pin_plan plan;
    bool has_plan, has_feeds;
    bool has_stock; /* a trace's keys are stored: an unknown number */
    atomic_bool stop;
    atomic_uint over;             /* threads that have come to the end of their traces */
    atomic_bool is_asked;         /* to stop by run_stop, since run_rearm */
    struct drive_refusal refusal; /* in all runs */
    bool has_told_refusal;
    struct progress progress;
    struct sampler sampler;
    struct stats_poll poll;
    uint64_t count; /* runs so far */
    nsec_t opened_at, ready_at, drained_at;
    struct drive_window window;
    struct steal_watch steal;
    struct stopping stopping;
    sigset_t signals, mask_before;
    bool is_masked;
};

/* Prints the line; EXIT_UNREACHABLE. */
must_check enum exit_status run_fail(const struct run *r, const char *what);

/* ---- assignment.c: which servers, connections and records a thread has, and how it sends */

/* Of what all processes together store, the part of one of the class's threads. */
struct load_slice assignment_slice(const struct run *r, const struct run_class *c,
                                   unsigned thread);
/* The same of a trace: of all its keys, those of this process, delivered to be stored; */
struct reader_run assignment_stock(const struct run *r, const struct run_class *c);
/* and of its requests, what is replayed in a run. */
struct reader_run assignment_replay(const struct run *r, const struct run_class *c,
                                    const struct run_spec *spec);
/* What may be another in each run. */
struct drive_conf assignment_drive(struct run *r, const struct run_class *c,
                                   unsigned thread);
/* What the thread starts with; takes local ports when they are chosen. */
struct lthread_conf assignment_thread(struct run *r, const struct run_class *c,
                                      unsigned thread);

/* ---- await.c: the end of a run, and what is told meanwhile ----------------------------- */

enum run_end {
    RUN_DONE,
    RUN_OVER,   /* all threads have come to the end of their traces */
    RUN_ENOUGH, /* the caller wants no more */
    RUN_SIGNAL,
};

/* Waits for SIGINT or SIGTERM. True when one came; the next one ends the process, whatever it
 * does. */
bool await_signal(const struct run *r, int timeout_ms);
/* Until the end of the window, or sooner; threads are told then. The tick is called each
 * `tick_length` (struct run_spec). */
enum run_end await_end(struct run *r, const struct run_spec *spec, nsec_t tick_length);

/* ---- collect.c: the result, when all threads are at rest -------------------------------- */

/* When the last of these threads ended its window, at its start at the soonest: it may have been
 * cut short, and each thread notices that for itself. */
nsec_t run_ended_at(const struct run *r, unsigned first, unsigned count);
/* Fills in `result`, its classes and their sum (result_fini). */
void collect_result(struct run *r, const struct run_spec *spec, enum run_end how,
                    struct result *result);
/* When each part of the run went on; it ended at `end`. */
void collect_phases(const struct run *r, nsec_t end, struct result *result);
