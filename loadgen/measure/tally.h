/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What one sending thread counts and measures, and the sum over all of them. The owner
 * writes; any thread may read or merge meanwhile (each number whole, not all of one
 * instant).
 *
 * Two kinds of numbers: *flow* (requests, hits, bytes) counts what was completed between
 * the start and the end of the measured window; *latencies* cover each request whose
 * intended start lies in the window, whenever its reply came.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/ctr.h"
#include "base/hist.h"
#include "loadgen/measure/size_class.h"
#include "loadgen/wire/codec.h"

#define TALLY_SUB_BITS 10 /* buckets of 0.1 % */
#define TALLY_MAX_NS (UINT64_C(100) * NSEC_PER_SEC)

enum tally_from {
    FROM_INTENDED, /* when the schedule wanted it sent */
    FROM_ISSUE,    /* when it was given to the kernel */
    FROM_COUNT,
};

enum tally_verb {
    TALLY_READ,
    TALLY_UPDATE,
    TALLY_VERBS,
};

enum tally_error {
    TALLY_ERROR,        /* reply ERROR */
    TALLY_CLIENT_ERROR, /* reply CLIENT_ERROR */
    TALLY_SERVER_ERROR, /* reply SERVER_ERROR */
    TALLY_UNEXPECTED,   /* a reply of the protocol, but not to this request */
    TALLY_WRONG,        /* a value that is not what was stored */
    TALLY_DESYNC,       /* not the protocol: connection given up */
    TALLY_DISCONNECT,   /* connection lost */
    TALLY_TIMEOUT,      /* no reply in time: connection given up */
    TALLY_CONNECT,      /* attempt to connect again failed */
    TALLY_LATE,         /* datagrams: a reply after the time-out */
    TALLY_DUPLICATE,    /* datagrams: one that had come before */
    TALLY_ERRORS,
};

/* Shares of requests sent within these times of their intended start. */
enum tally_bound {
    WITHIN_5US,
    WITHIN_50US,
    WITHIN_1MS,
    TALLY_BOUNDS,
};

struct tally {
    ctr_t loaded;   /* records stored before the run */
    ctr_t answered; /* since the very start, for the progress line */
    ctr_t errors[TALLY_ERRORS];
    ctr_t opened;   /* connections: those of the beginning, and all made since */
    ctr_t closed;   /* of these: by intent, its own or the server's */
    ctr_t unserved; /* at the end: asked, and nothing came in all the run */
    /* Flow. */
    ctr_t done[TALLY_VERBS];      /* requests answered without an error */
    ctr_t keys, hits;             /* asked for by gets, and found */
    ctr_t ops[CODEC_VERBS];       /* the same requests by what was sent */
    ctr_t no_effect[CODEC_VERBS]; /* of these: the key was not there, or was */
    ctr_t rx_bytes, tx_bytes;
    /* Flow, of keys that were missed. */
    ctr_t filled;   /* stored afterwards */
    ctr_t unfilled; /* left out: too many waited, or the connection was lost meanwhile */
    ctr_t won;      /* leases */
    ctr_t waited;   /* of others, waited for: each answer that said so */
    ctr_t given_up; /* of these: asked too often, too many waited, or no connection */
    ctr_t stale;    /* values that were out of date; hits */
    /* Requests intended to start in the window. */
    ctr_t offered; /* all of them */
    ctr_t sent;
    ctr_t good;       /* answered without an error */
    ctr_t skipped;    /* dropped for being late */
    ctr_t unsent;     /* still waiting at the end */
    ctr_t lost;       /* sent, then the connection was lost */
    ctr_t unanswered; /* sent, without reply at the end */
    ctr_t starved;    /* of a trace, and not read yet when due: the reader is too slow */
    ctr_t within[TALLY_BOUNDS];
    /* For Little's law: of each request the time that it was on its way in the window,
     * nanoseconds; and how many were so at its begin and at its end. */
    ctr_t on_their_way, at_edges;
    struct hist *latency[FROM_COUNT][TALLY_VERBS];
    struct hist *waits; /* of requests never answered: how long they were waited for */
    struct hist *lag;   /* issue minus intended start */
    struct hist *wire;  /* by stamps of the kernel or the card: reply minus request */
    struct hist *late;  /* of this, what no connection was waited for: the client's own */
    struct hist *gaps_intended, *gaps_issued; /* of an open loop's requests; see gaps.h */
    struct hist *outstanding; /* on the connection, this request included */
    /* Of gets, from the intended start, by the bytes of the values that came; empty unless
     * that is asked for. */
    struct hist *sizes[SIZE_CLASSES];
};

/* False when memory is short (nothing to free then). */
bool tally_init(struct tally *t);
void tally_fini(struct tally *t);
void tally_merge(struct tally *dst, const struct tally *src);
/* Owner only. */
void tally_reset(struct tally *t);

/* All counters and all histograms by number, for sending them elsewhere. */
unsigned tally_counters(void);
ctr_t *tally_counter(struct tally *t, unsigned i);
unsigned tally_hists(void);
struct hist *tally_hist(struct tally *t, unsigned i);

/* n requests of the window were given to the kernel, so long after they were meant to be. */
void tally_sent(struct tally *t, nsec_t lag, unsigned n);
/* It was answered without error. */
void tally_good(struct tally *t, enum tally_verb verb, nsec_t from_intended,
                nsec_t from_issue);
/* It was a get, and brought values of so many bytes. */
void tally_sized(struct tally *t, uint64_t bytes, nsec_t from_intended);
/* It will never be answered; `which` is the counter of the reason. */
void tally_censored(struct tally *t, ctr_t *which, nsec_t waited);

uint64_t tally_error_sum(const struct tally *t);
const char *tally_error_name(enum tally_error e);
