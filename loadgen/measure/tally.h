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
#include "loadgen/wire/codec.h"

#define TALLY_SUB_BITS 10 /* buckets of 0.1 % */
#define TALLY_MAX_NS (UINT64_C(100) * NSEC_PER_SEC)

/* Gets by the bytes of the values that came, in powers of four: a large one holds up the small
 * ones behind it, which the latencies of all together do not show. */
#define SIZE_CLASSES 8
#define SIZE_CLASS_FIRST_BITS 6 /* the first are those up to 64 bytes */

static inline unsigned
size_class_of(uint64_t bytes)
{
    uint64_t above = (bytes - 1) >> SIZE_CLASS_FIRST_BITS;
    if (bytes <= UINT64_C(1) << SIZE_CLASS_FIRST_BITS) {
        return 0;
    }
    unsigned at = (63 - (unsigned)__builtin_clzll(above)) / 2 + 1;
    return at < SIZE_CLASSES ? at : SIZE_CLASSES - 1;
}

/* The largest of a class; UINT64_MAX of the last one. */
static inline uint64_t
size_class_most(unsigned i)
{
    return i < SIZE_CLASSES - 1 ? UINT64_C(1) << (SIZE_CLASS_FIRST_BITS + 2 * i)
                                : UINT64_MAX;
}

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

/* How many there are of each. */
enum {
    TALLY_COUNTERS = 0
#define COUNTER(name, dimension) +(int)(sizeof(char dimension))
#define HIST(name, dimensions)
#include "loadgen/measure/tally.def"
    ,
    TALLY_HISTS = 0
#define COUNTER(name, dimension)
#define HIST(name, dimensions) +(int)(sizeof(char dimensions))
#include "loadgen/measure/tally.def"
};

struct tally {
    union {
        struct {
#define COUNTER(name, dimension) ctr_t name dimension;
#define HIST(name, dimensions)
#include "loadgen/measure/tally.def"
        };
        ctr_t counters[TALLY_COUNTERS]; /* the same by number */
    };
    union {
        struct {
#define COUNTER(name, dimension)
#define HIST(name, dimensions) struct hist *name dimensions;
#include "loadgen/measure/tally.def"
        };
        struct hist *hists[TALLY_HISTS];
    };
};

/* False when memory is short (nothing to free then). */
bool tally_init(struct tally *t);
void tally_fini(struct tally *t);
void tally_merge(struct tally *dst, const struct tally *src);
/* Owner only. */
void tally_reset(struct tally *t);

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
extern const char *const tally_error_names[TALLY_ERRORS];
