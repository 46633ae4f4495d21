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

#include "base/clock.h"
#include "base/ctr.h"
#include "base/hist.h"
#include "loadgen/wire/codec.h"

#define COUNTERS_SUB_BITS 10 /* buckets of 0.1 % */
#define COUNTERS_MAX_NS (UINT64_C(100) * NSEC_PER_SEC)

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

enum counters_from {
    FROM_INTENDED, /* when the schedule wanted it sent */
    FROM_ISSUE,    /* when it was given to the kernel */
    FROM_COUNT,
};

enum counters_verb {
    COUNTERS_READ,
    COUNTERS_UPDATE,
    COUNTERS_VERBS,
};

enum counters_error {
    COUNTERS_ERROR,        /* reply ERROR */
    COUNTERS_CLIENT_ERROR, /* reply CLIENT_ERROR */
    COUNTERS_SERVER_ERROR, /* reply SERVER_ERROR */
    COUNTERS_UNEXPECTED,   /* a reply of the protocol, but not to this request */
    COUNTERS_WRONG,        /* a value that is not what was stored */
    COUNTERS_DESYNC,       /* not the protocol: connection given up */
    COUNTERS_DISCONNECT,   /* connection lost */
    COUNTERS_TIMEOUT,      /* no reply in time: connection given up */
    COUNTERS_CONNECT,      /* attempt to connect again failed */
    COUNTERS_LATE,         /* datagrams: a reply after the time-out */
    COUNTERS_DUPLICATE,    /* datagrams: one that had come before */
    COUNTERS_ERRORS,
};

/* Shares of requests sent within these times of their intended start. */
enum counters_bound {
    WITHIN_5US,
    WITHIN_50US,
    WITHIN_1MS,
    COUNTERS_BOUNDS,
};

static inline enum counters_verb
counters_verb_of(enum codec_verb verb)
{
    return codec_is_get(verb) ? COUNTERS_READ : COUNTERS_UPDATE;
}

/* How many there are of each. */
enum {
    COUNTERS_LEN = 0
#define COUNTER(name, dimension) +(int)(sizeof(char dimension))
#define HIST(name, dimensions)
#include "loadgen/measure/counters.def"
    ,
    COUNTERS_HISTS = 0
#define COUNTER(name, dimension)
#define HIST(name, dimensions) +(int)(sizeof(char dimensions))
#include "loadgen/measure/counters.def"
};

struct counters {
    union {
        struct {
#define COUNTER(name, dimension) ctr_t name dimension;
#define HIST(name, dimensions)
#include "loadgen/measure/counters.def"
        };
        ctr_t all[COUNTERS_LEN]; /* the same by number */
    };
    union {
        struct {
#define COUNTER(name, dimension)
#define HIST(name, dimensions) struct hist *name dimensions;
#include "loadgen/measure/counters.def"
        };
        struct hist *hists[COUNTERS_HISTS];
    };
};

/* For latencies, of so many buckets (base/hist.h). */
struct hist *counters_hist(unsigned sub_bits);

void counters_init(struct counters *t);
void counters_fini(struct counters *t);
void counters_merge(struct counters *dst, const struct counters *src);
/* Owner only. */
void counters_reset(struct counters *t);

/* n requests of the window were given to the kernel, so long after they were meant to be. */
void counters_sent(struct counters *t, nsec_t lag, unsigned n);
/* n of them were answered without error. */
void counters_good(struct counters *t, enum counters_verb verb, nsec_t from_intended,
                   nsec_t from_issue, unsigned n);
/* They were gets, and each brought values of so many bytes. */
void counters_sized(struct counters *t, uint64_t bytes, nsec_t from_intended, unsigned n);
/* It will never be answered; `which` is the counter of the reason. */
void counters_censored(struct counters *t, ctr_t *which, nsec_t waited);

uint64_t counters_error_sum(const struct counters *t);
/* Of all verbs together. */
uint64_t counters_sum(const ctr_t of[COUNTERS_VERBS]);
/* Requests answered in the window. */
uint64_t counters_done(const struct counters *t);
extern const char *const counters_error_names[COUNTERS_ERRORS];
extern const char *const counters_from_names[FROM_COUNT];
