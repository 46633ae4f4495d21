/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The trace of a class at work: its reader, and for each thread the workload whose keys are
 * those of its book. A class without a trace has an empty one. The main thread's.
 */
#pragma once

#include "loadgen/drive/reader.h"
#include "loadgen/options/lclass.h"
#include "loadgen/work/workload.h"

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
