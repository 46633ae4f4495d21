/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Results read back from JSON files of any origin: what does not fit is refused with a
 * sentence. One thread.
 */
#pragma once

#include "base/hist.h"
#include "base/must.h"

#define SAVED_ERR_MAX 512

enum saved_at {
    SAVED_P50,
    SAVED_P95,
    SAVED_P99,
    SAVED_P999,
    SAVED_AT,
};

/* A percentile, ns. */
struct saved_point {
    /* false: it lies among requests never answered, or there are none */
    bool is_measured;
    bool has_interval;
    double value;
    double low, high; /* high is INFINITY when open */
};

/* What makes a run's load another workload: members of "load", each as text; "": it has none. */
#define SAVED_LOADS 6
#define SAVED_LOAD_MAX 64
extern const char *const saved_loads[SAVED_LOADS];

struct saved_load {
    char text[SAVED_LOADS][SAVED_LOAD_MAX];
};

/* The next member, from number `i` on, that both have and that is another; SAVED_LOADS: none. */
unsigned saved_differs(const struct saved_load *a, const struct saved_load *b,
                       unsigned i);

struct saved_row {
    double start_s, length_s, rate, p50, p99;
};

struct saved_run {
    char *name; /* of the file, without folders and ending */
    bool is_valid;
    struct saved_load load;
    double asked_qps, achieved_qps; /* asked 0: a closed loop */
    struct hist *latency;           /* from the intended start, of those answered */
    uint64_t censored;              /* never answered: slower than all of them */
    struct saved_point at[SAVED_AT];
    struct saved_row *rows;
    unsigned rows_len;
};

struct saved {
    char *name; /* of the group, NULL: none */
    struct saved_run *runs;
    unsigned count;
    bool is_scan; /* a file has runs that were asked for different rates */
};

extern const char *const saved_names[SAVED_AT]; /* "p99.9" */
extern const double saved_shares[SAVED_AT];

/* Also after a failure, and of a zeroed struct. */
void saved_fini(struct saved *s);

/* A text to a file, or to stdout (NULL, "-"). False with a sentence
 * in err (SAVED_ERR_MAX); then there is no such file. */
must_check bool saved_write(const char *path, const char *text, char *err);

/* NULL where jansson is missing. */
extern const struct saved_reader {
    /* Adds the run of a file, or all when it holds several (a scan, repeats), each with its rate in
     * its name; of each only this class (NULL: all). False with a sentence in err; what was added
     * before stays. */
    bool (*read)(struct saved *s, const char *path, const char *class, char *err);
    /* Writes to `out_path`, as saved_write does, one result in place of several. Histograms are added
     * bucket by bucket; counts add up. `in_turn`: the runs came one after another, else they ran
     * at the same time, and their rates add up, however long each was. */
    bool (*merge)(const char *const *paths, unsigned count, bool in_turn,
                  const char *out_path, char *err);
} *const saved_reader;
