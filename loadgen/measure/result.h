/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a run came to, and whether it is worth anything. Filled by the main thread when all
 * others have ended. Pure.
 */
#pragma once

#include "loadgen/measure/check.h"
#include "loadgen/measure/cost.h"
#include "loadgen/measure/machine.h"
#include "loadgen/measure/gaps.h"
#include "loadgen/measure/samples.h"
#include "loadgen/measure/series.h"
#include "loadgen/measure/server_stats.h"
#include "loadgen/measure/evenness.h"
#include "loadgen/measure/counters.h"
#include "loadgen/measure/until.h"

/* Of the hit ratio, from the first half of a run to the second. */
#define RESULT_DRIFT_HITS_MAX 0.05
#define RESULT_DRIFT_T 5 /* Student's t that is beyond chance */
/* By so much of what was offered may the number of those that wait grow; so many standard deviations
 * are beyond chance. */
#define RESULT_BEHIND 0.01
#define RESULT_BEHIND_T 2
/* Lag within the slack of the kernel's timers is no lateness. */
#define RESULT_LATENESS_FLOOR (50 * NSEC_PER_USEC)

/* A quantile of all requests of a kind, those never answered counting as slower than all
 * others and ordered by how long they were waited for. */
struct quantile {
    uint64_t ns;
    bool is_bound; /* the true one is above ns */
};

struct search;

/* What was sent before to reach a steady state, with --warmup=auto. */
struct result_warmup {
    bool was_made, has_settled;
    double seconds;
    double cut_s; /* it has settled: after so long */
};

/* What a run was made of, in its order. */
enum result_phase {
    PHASE_LOAD, /* connecting and storing records, before the first run */
    PHASE_WARMUP,
    PHASE_MEASURE,
    PHASE_DRAIN, /* waiting for the last replies */
    PHASES,
};

/* Seconds since mcload began to connect; equal: there was none. */
struct result_span {
    double start_s, stop_s;
};

/* The moments that part a run, of one process or of a swarm, by the clock of the process that
 * tells. */
struct phase_times {
    nsec_t opened, ready; /* connecting began; all are connected and have loaded */
    bool is_first;        /* no run was before this one: loading is a part of it */
    nsec_t begin, start;  /* of the warm-up, of the window */
    nsec_t end;           /* of the window */
    nsec_t drained;       /* the last reply has come, or none does any more */
};

void result_phases(const struct phase_times *t, struct result_span phases[PHASES]);
extern const char *const result_phase_names[PHASES];

#define RESULT_NAME_MAX 256
#define RESULT_WHY_MAX 512

/* One process of a swarm: a single one that does not keep up must be visible. */
struct result_agent {
    char name[RESULT_NAME_MAX];
    const char *role;  /* "load", "measure" or "observe" */
    unsigned observed; /* servers asked for their stats, */
    uint64_t samples;  /* and their answers */
    bool is_lost;
    char why[RESULT_WHY_MAX]; /* it is */
    double qps;               /* its share, 0: closed loop */
    double capacity; /* requests a second that it was seen to send; 0: not known */
    double elapsed_s;
    uint64_t offered, achieved;
    double adherence;         /* sent within 1 ms */
    double busy;              /* of its busiest thread */
    uint64_t requests;        /* answered or not */
    struct quantile p50, p99; /* from the intended start */
    uint64_t lag_p99;         /* nanoseconds */
    double tail_share;    /* of all requests slower than the run's p99, or not answered */
    double share;         /* of all requests */
    uint64_t start_error; /* how late it began */
    uint64_t clock_bound; /* by which the start may be off besides; 0: the leader's own */
    uint64_t intervals;   /* reports on the way */
    uint64_t behind;      /* how late its loop beside the load was at most, in the run */
};

/* Whether a server answered what an open loop offered, or left more and more of it to wait. */
enum result_pace {
    PACE_KEPT,
    PACE_UNSURE, /* fell behind, as by chance */
    PACE_BEHIND,
};

/* What became of a swarm's run that lost a process, when the others went on. */
struct result_loss {
    bool has_happened;
    bool is_accepted;  /* it does not make the run invalid */
    double headline_s; /* the run's numbers are those up to here, when all were there; 0:
                        * nothing was cut, they are all that was reported */
    double after_s;    /* of what came behind it, for those that were left: */
    uint64_t after_offered, after_achieved;
};

/* Of the whole run, and, one each, of its classes. */
struct result {
    const char *name; /* of the class; NULL: the whole run */
    bool is_open;     /* all classes are */
    const char *mode; /* of a class: "open", "closed" or "partly"; NULL: by is_open */
    double qps;       /* as asked for, 0: closed loop */
    double elapsed_s; /* of the measured window */
    unsigned threads;
    struct cost *costs; /* one a thread */
    struct counters total;
    struct hist *all[FROM_COUNT]; /* latencies of all requests; by result_judge */
    bool is_replay;               /* of a trace, by one of the classes */
    double hits_expected; /* share of keys, 1: each miss is the server's doing; below 0:
                           * unknown */
    bool was_interrupted;
    bool is_uneven;     /* the load is meant to change while it lasts */
    bool is_antagonist; /* of a class: it may be served as badly as it likes */
    bool is_local;      /* client and server share a machine */
    unsigned gap_each;  /* requests of a gap; 0: an arrival law was not looked at */
    bool has_steal;     /* of the CPUs of this process; in a swarm, */
    double steal;       /* the largest share */
    double peak_qps;    /* closed loop, of a run before; 0: not measured */
    struct result_warmup warmup; /* of the whole run */
    double began_s;              /* the time of day, since 1970, when phases are at 0 */
    struct result_span phases[PHASES]; /* likewise; of this process */
    const struct search *search;       /* whose answer this run was made at; NULL: none */
    const struct check_limits *limits; /* NULL: those that none was asked for */
    struct check checks[CHECKS];
    bool is_valid;
    enum result_pace pace;             /* of a class; by result_judge */
    struct evenness *evenness;         /* NULL: not looked at */
    struct series *series;             /* the run in its order; NULL: not looked at */
    struct server_stats *server_stats; /* of the whole run; NULL: not asked for */
    struct server_settings *server_settings; /* likewise; a user of it */
    struct server_evictions evictions;       /* of the whole run */
    /* which latencies are told, and held against the objective */
    enum counters_from from;
    struct objective slo; /* of a class; all zero: none */
    struct quantile slo_value;
    uint64_t slo_needs; /* requests, so that one of them is slower than the percentile */
    bool is_slo_known;  /* there were as many */
    bool is_slo_met;    /* of the whole run: of all classes that have one */
    struct result *classes; /* of the whole run only */
    unsigned classes_len;   /* at least 1 then */
    unsigned shown;         /* of several: the class whose latencies are the run's */
    bool has_shown;
    const struct samples **samples; /* of the whole run, one a thread; NULL: none kept */
    unsigned samples_len;
    const struct until *until; /* what it went on for; NULL: its time */
    bool is_until_met;
    const struct machine *env;   /* NULL: not looked at */
    struct result_agent *agents; /* of the whole run of a swarm only */
    unsigned agents_len;
    struct result_loss loss; /* of the whole run */
};

/* Records were missed, by one of its classes at least, though all that was asked for was stored
 * before. */
bool result_misses_records(const struct result *r);

/* What the run's table of latencies is made of. */
const struct counters *result_shown(const struct result *r);

/* With room for classes, whose own result_init is the caller's; a class has none. */
void result_init(struct result *r, unsigned threads, unsigned classes);
void result_fini(struct result *r);

/* Adds the numbers of a class to those of the whole run, its costs from `first` on. */
void result_add_class(struct result *r, const struct result *of_class, unsigned first);
/* Fills all, checks and is_valid from the rest, of classes too; once. With several classes
 * the whole is as good as each of them. */
void result_judge(struct result *r);
/* The law of its arrivals, as wanted and as sent. */
struct gaps_apart result_gaps(const struct result *r);

/* Requests that the server has kept up with, of a run or of one of its classes. What one that fell
 * behind answers later, when nothing more is sent, tells nothing of its rate. */
uint64_t result_achieved(const struct result *r);
/* The same of a part of it. */
uint64_t result_achieved_of(const struct counters *part, bool is_behind);

/* Share of its time that a thread had work and no CPU, the largest of all. */
double result_longest_wait(const struct result *r);
/* Share of a thread's time spent working: CPU less polling with nothing to do. */
double result_busy(const struct cost *cost);
/* a/b, 0 when b is 0. */
double result_ratio(double a, double b);

struct quantile result_quantile(const struct hist *finite, const struct hist *waits,
                                uint64_t censored, double q);
/* The same of all requests of a run. */
struct quantile result_at(const struct result *r, enum counters_from from, double q);
/* Requests of the window that were never answered. */
uint64_t result_censored(const struct counters *t);
/* For counters taken before the run ends: those whose waits are not known yet get a wait of 0. */
void result_settle_waits(struct counters *t);
/* Of these the updates: what was never sent has no verb yet, and has that share of them. */
uint64_t result_censored_updates(const struct counters *t, double share_of_updates);
