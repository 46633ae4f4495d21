/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What the processes of a swarm report of a run, interval by interval. A report waits until
 * all have reported the interval; then it is added up, so that the rows of a run are those
 * of all processes together, and so that the sums can be cut where the first process was
 * lost. Pure but for memory; under one lock.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "loadgen/measure/series.h"
#include "loadgen/measure/counters.h"
#include "loadgen/swarm/frame.h"

/* Intervals that wait for others: of one that is further ahead the oldest is added up without
 * them. */
#define LEDGER_WAITING 256
/* Likewise of one whose reports that wait take more, but for an interval of which all classes
 * have not come yet. */
#define LEDGER_WAITING_BYTES ((size_t)16 << 20)

/* A process: which classes it reports, nothing when it takes no part. */
struct ledger_part {
    unsigned first_class, end_class;
};

struct ledger_run {
    const struct ledger_part *parts;
    nsec_t start, end;
    nsec_t length; /* of an interval */
    nsec_t row_length;
    bool keeps_latencies; /* of each row */
};

struct ledger;

must_check struct ledger *ledger_create(unsigned parts, unsigned classes);
void ledger_destroy(struct ledger **l);

/* Forgets what was before. */
void ledger_start(struct ledger *l, const struct ledger_run *run);

/* The delta (delta.h) of a class: classes in their order, intervals as well. False: it makes
 * no sense, nothing was added. */
must_check bool ledger_add(struct ledger *l, unsigned part, unsigned class_index,
                           uint64_t interval, const struct frame *delta);
/* It has reported all: others wait for it no more, and it can no longer be lost. */
void ledger_done(struct ledger *l, unsigned part);
/* Nothing more comes of it, what it has reported counts. Outside of a run, or of a process that
 * takes no part: nothing. */
void ledger_lose(struct ledger *l, unsigned part);
/* Whether one was lost before all had reported an interval: no number is of a time when all were there. */
bool ledger_is_void(const struct ledger *l);
/* Intervals added up, */
uint64_t ledger_added(const struct ledger *l);
/* and what they come to, of all classes and processes: n counters, valid until the next call. */
const struct counters *const *ledger_look(struct ledger *l, unsigned *n);
/* All have reported, or are lost; the run was over at `end`. Adds up what waits. */
void ledger_finish(struct ledger *l, nsec_t end);

/* ---- when it is finished ---------------------------------------------------------------- */

/* All that it reported of the class. */
struct counters *ledger_sum(const struct ledger *l, unsigned part, unsigned class_index);
/* The same up to the last interval before the first loss, or all of it. */
const struct counters *ledger_headline(const struct ledger *l, unsigned part,
                                       unsigned class_index);
/* Intervals before the first loss; 0: none was lost, or none came before. */
uint64_t ledger_cut(const struct ledger *l);
/* Intervals that it has reported. */
uint64_t ledger_reported(const struct ledger *l, unsigned part);
/* Of a class, or (with their number) of all; the caller's then. Up to the cut, but for the
 * rows, which go on behind it: each knows how many had been lost. NULL when memory was
 * short. */
struct series *ledger_take_series(struct ledger *l, unsigned class_index);
