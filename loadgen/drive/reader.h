/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Reads a trace ahead for the threads of a class: on a thread of its own it turns records into
 * requests, with the times when they are meant to start, and hands each to the thread whose
 * connection it belongs to (work/trace_buffer.h). The main thread calls all of it; sending threads
 * know the books only.
 */
#pragma once

#include "loadgen/wire/codec.h"
#include "loadgen/work/arrivals.h"
#include "loadgen/work/trace_buffer.h"
#include "loadgen/work/trace.h"

/* Requests read ahead, of all threads of a class together; and of each at least. */
#define READER_PAGES 131072
#define READER_PAGES_MIN 16384

/* What requests share a connection, on which their order is kept. */
enum reader_order {
    READER_BY_KEY,
    READER_BY_CLIENT, /* where the trace tells it, else by key */
};

/* Which requests of the trace are sent: those whose route (a hash of key or client) lies from
 * `first` to below `end`. Slices that follow on each other part a trace by keys or clients. */
#define READER_ROUTES (UINT64_C(1) << 32)

struct reader_slice {
    uint64_t first, end; /* end 0: all */
};

struct reader_conf {
    struct trace_conf trace; /* its texts live longer */
    enum reader_order order;
    enum trace_spread spread;
    double speed;   /* as fast as it was recorded: 1; 0: times do not count */
    uint64_t remap; /* keys are numbers below this; 0: what the trace says */
    const char *key_prefix;
    unsigned verbs; /* CODEC_BIT of each that can be sent */
    unsigned threads;
};

/* What is stored before replays: each key of which the trace tells the length of the value, once
 * to each lane of threads. Thread t is of lane t % lanes, which has servers of its own. */
struct reader_stock {
    uint64_t most; /* keys, of this process */
    unsigned lanes;
};

/* Of one run. */
struct reader_run {
    bool stocks; /* delivers what is to be stored, as sets, in place of the requests */
    struct reader_stock stock;
    const struct arrivals_law *law; /* speed 0, when there is a rate: gaps */
    double rate;                    /* a second, of all threads; 0: as fast as can be */
    uint64_t seed, stream;
    uint64_t until_ns; /* what is due from there on is not delivered; 0: all is */
    /* Times are spread as if all were sent. What is to be stored is parted by keys. */
    struct reader_slice slice;
};

/* What was met in the last run, beside the trace's own notes. */
struct reader_notes {
    struct trace_notes trace;
    uint64_t cut_values;  /* longer than WORKLOAD_TRACE_VALUE_MAX */
    uint64_t unsupported; /* requests that the protocol has no words for */
    uint64_t stocked;     /* keys to be stored, */
    bool is_cut;          /* and there are more than that */
};

struct reader;

/* NULL, or a sentence (err). */
must_check const char *reader_open(struct reader **r, const struct reader_conf *conf,
                                   char err[TRACE_ERR_MAX]);
/* Also of NULL. No sending thread uses a book any more. */
void reader_close(struct reader **r);

struct trace_buffer *reader_buffer(struct reader *r, unsigned thread);

/* Begins at the trace's begin. No sending thread is at work, none may be until the reader is
 * primed or, with `stocks`, until this returns. NULL, or a sentence (err). */
must_check const char *reader_start(struct reader *r, const struct reader_run *run,
                                    char err[TRACE_ERR_MAX]);
/* Whether as much is read as there is room for. */
bool reader_is_primed(const struct reader *r);
/* Lets reading end soon: what it delivers is not taken any more. Books end. */
void reader_halt(struct reader *r);
/* Ends reading: the run is over. NULL, or a sentence (valid until the next start) about what
 * was wrong with the trace; *notes are filled in. */
must_check const char *reader_stop(struct reader *r, struct reader_notes *notes);
