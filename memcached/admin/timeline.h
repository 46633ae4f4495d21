/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The last quarter of an hour in steps of five seconds: what the live page draws. Each step tells
 * the differences between two marks, which hold totals since the start. Pure: time, totals and
 * histograms are arguments. One thread.
 *
 * Memory: TIMELINE_STEPS samples of less than a kilobyte, however many workers there are; 16 bytes
 * a worker in each of the two marks; two histograms for each class and one more (4 KB each).
 */
#pragma once

#include "base/clock.h"
#include "base/hist.h"
#include "base/must.h"
#include "qos/class.h"
#include "store/store.h"

#define TIMELINE_STEP (5 * NSEC_PER_SEC)
#define TIMELINE_STEPS 180
#define TIMELINE_SPAN (TIMELINE_STEPS * TIMELINE_STEP)

/* Counts since the start, of all workers. */
struct timeline_counts {
    uint64_t requests[CLASS_COUNT], refused[CLASS_COUNT];
    uint64_t hits, misses;
};

/* The time of a worker since its start. */
struct timeline_thread {
    nsec_t run_ns, wait_ns; /* on a CPU; ready to run, but not running */
};

/* Totals at a moment. */
struct timeline_mark {
    nsec_t at;
    struct timeline_counts counts;
    struct hist *delays[CLASS_COUNT]; /* ns until requests were read */
    struct timeline_thread *threads;  /* of the workers */
};

/* What is measured at the end of a step. */
struct timeline_gauges {
    double headroom_pct; /* below 0: not known */
    double level_pct;
    double tokens;  /* in the bucket of the limit of all */
    uint64_t limit; /* of all, requests a second; 0: none */
    uint64_t item_bytes;
    uint32_t connections;
    uint32_t pages[STORE_CLASSES];
};

struct timeline_share {
    double mean, most; /* of the workers, 0 to 1 */
};

struct timeline_sample {
    nsec_t at, length; /* its end */
    struct timeline_counts counts;
    bool has_delay[CLASS_COUNT];
    nsec_t p50_ns[CLASS_COUNT], p99_ns[CLASS_COUNT];
    struct timeline_share busy, wait;
    struct timeline_gauges gauges;
};

struct timeline {
    unsigned workers;
    nsec_t begun, due;
    struct timeline_mark before, now;
    struct hist *delta;
    struct timeline_thread *last; /* of each worker in the last step */
    unsigned count, newest;
    struct timeline_sample samples[TIMELINE_STEPS];
};

/* False: no memory; timeline_fini takes what there is. */
must_check bool timeline_init(struct timeline *t, unsigned workers, unsigned sub_bits,
                              uint64_t max_delay_ns);
void timeline_fini(struct timeline *t);

/* The next mark, all zeros: to be filled before the next two. */
struct timeline_mark *timeline_mark(struct timeline *t);
/* The mark is the beginning of the first step. */
void timeline_begin(struct timeline *t, nsec_t now);
/* Whether a step ends now, asked once a second. */
bool timeline_is_due(const struct timeline *t, nsec_t now);
/* The mark is the end of a step, which is due. A step that ends late is longer, and none
 * is made up for the time that was missed. */
void timeline_step(struct timeline *t, nsec_t now, const struct timeline_gauges *gauges);

/* Samples that are not older than TIMELINE_SPAN. */
unsigned timeline_count(const struct timeline *t, nsec_t now);
/* The newest is 0. */
const struct timeline_sample *timeline_sample(const struct timeline *t, unsigned back);
