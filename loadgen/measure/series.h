/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A run in its order: pieces of equal length with coarse histograms, from which its
 * confidence and its drift are told, and rows of fixed length to be shown. Both are what
 * came between two looks at the counters of the sending threads, which those do not notice.
 * The looking thread only.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "loadgen/measure/ci.h"
#include "loadgen/measure/counters.h"

/* ---- packed ----------------------------------------------------------------------- */

/* The counts of a histogram in few bytes, as HdrHistogram's second encoding writes them: from
 * the lowest bucket on one number each, a run of empty ones as minus its length; numbers in
 * zigzag order (0 -1 1 -2 2 ...), seven bits a byte from the lowest on, the ninth byte eight.
 * Our buckets are those of a histogram with PACKED_DIGITS significant digits and unit 1.
 * Pure; one thread. */
#define PACKED_DIGITS 3
#define PACKED_SUB_BITS 10 /* 2 * 10^3, made a power of two, in each half of it */

struct packed {
    uint8_t *bytes; /* owned */
    size_t len;
};

/* Of a histogram with PACKED_SUB_BITS. */
void packed_make(struct packed *p, const struct hist *h);
void packed_fini(struct packed *p);

/* ---- series ------------------------------------------------------------------------ */

#define SERIES_SUB_BITS 8
#define SERIES_PIECES 128  /* when there are so many, each two become one */
#define SERIES_STEPS_MIN 4 /* fewer do not tell how much is chance */

/* Since the start at a look; or between two looks, which is shown or kept. */
struct series_sum {
    nsec_t from, to;
    uint64_t requests, keys, hits, errors;
    uint64_t censored; /* never answered; of now */
    /* Offered in the window, less what was over in it: what waits, but for a constant. */
    int64_t backlog;
    struct hist *latency; /* from the intended start */
    struct hist *fine;    /* the same in full; NULL but for rows that keep latencies */
};

struct series_row {
    double start_s, length_s; /* from the start of the window */
    uint64_t requests, keys, hits, errors;
    uint64_t p50, p95, p99, max; /* ns, 0 without requests */
    unsigned lost;               /* processes of a swarm that were gone by its end */
    struct packed latencies;     /* all of them; empty unless they are kept; owned */
};

struct series {
    nsec_t start;
    nsec_t row_length; /* 0: no rows */
    nsec_t next_row;
    struct series_sum now, piece_from, row_from, between;
    struct series_sum pieces[SERIES_PIECES];
    unsigned count;
    unsigned looks, looks_each; /* taken of the piece in the making, and needed */
    struct series_row *rows;
    unsigned rows_len;
};

/* It is large: made before the time of the run is fixed. `keeps_latencies`: rows have all of
 * theirs. */
must_check struct series *series_create(nsec_t row_length, bool keeps_latencies);
void series_destroy(struct series **s);
/* The window begins at `start`, with all counters 0. Before anything else. */
void series_start(struct series *s, nsec_t start);

/* A look at the counters of all threads at `now`; looks are to come at equal distances.
 * Without memory the rows end. */
void series_look(struct series *s, const struct counters *const *counters, unsigned count,
                 nsec_t now);
/* Before the first look, of a series that begins within a run: what was counted by `now` is
 * no part of it. */
void series_skip(struct series *s, const struct counters *const *counters, unsigned count,
                 nsec_t now);
/* After the last look: what is left becomes a row and a piece, or a part of the last. */
void series_end(struct series *s);

/* Moves the rows of `next` behind those of s, whose run it goes on with; as many as memory
 * allows. */
void series_append_rows(struct series *s, struct series *next);

/* How sure a percentile is. */
struct ci series_ci(const struct series *s, double q);

enum series_what {
    SERIES_LATENCY,   /* mean, ns */
    SERIES_HIT_RATIO, /* of keys asked for */
    SERIES_WHATS,
};

/* What has become of the second half of the pieces, when start-up is over. */
struct series_growth {
    double answered; /* requests */
    double backlog;  /* so many more waited at its end than at its begin */
    double chance; /* standard deviation of that, if pieces do not depend on each other */
};
struct series_growth series_growth(const struct series *s);

/* Hits of the keys asked for, of the first and of the second half of the pieces. False: one had none. */
must_check bool series_hits_of_halves(const struct series *s, double ratio[2]);

/* One number a piece, those without any left out; `values` has SERIES_PIECES places. */
unsigned series_values(const struct series *s, enum series_what what, double *values);
