/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a run came to, and whether it is worth anything. Filled by the main thread when all
 * others have ended. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/must.h"
#include "loadgen/measure/cost.h"
#include "loadgen/measure/tally.h"

/* A run beyond one of these says more about the client than about the server. */
#define RESULT_CPU_MAX 0.95       /* of a thread */
#define RESULT_RATE_MIN 0.99      /* achieved of offered */
#define RESULT_ADHERENCE_MIN 0.95 /* sent within 1 ms */

enum result_check {
    CHECK_ANSWERS,
    CHECK_CPU,
    CHECK_RATE,
    CHECK_ADHERENCE,
    CHECK_ERRORS,
    CHECK_COMPLETE, /* not interrupted */
    CHECKS,
};

struct check {
    bool applies; /* rate and adherence: only to an open loop */
    bool is_good;
    double value, limit;
};

struct result {
    bool is_open;
    double qps;       /* as asked for, 0: closed loop */
    double elapsed_s; /* of the measured window */
    unsigned threads;
    struct cost *costs; /* one a thread */
    struct tally total;
    struct hist *all[FROM_COUNT]; /* latencies of all requests; by result_judge */
    bool was_loaded, was_interrupted;
    bool is_local; /* client and server share a machine */
    struct check checks[CHECKS];
    bool is_valid;
};

/* False when memory is short. */
must_check bool result_init(struct result *r, unsigned threads);
void result_fini(struct result *r);

/* Fills all, checks and is_valid from the rest; once. */
void result_judge(struct result *r);
/* "achieved rate", for the verdict. */
const char *result_check_name(enum result_check check);

/* Share of a thread's time spent working: CPU less polling with nothing to do. */
double result_busy(const struct cost *cost);
/* a/b, 0 when b is 0. */
double result_ratio(double a, double b);

/* A quantile of all requests of a kind, those never answered counting as slower than all
 * others and ordered by how long they were waited for. */
struct quantile {
    uint64_t ns;
    bool is_bound; /* the true one is above ns */
};

struct quantile result_quantile(const struct hist *finite, const struct hist *waits,
                                uint64_t censored, double q);
/* Requests of the window that were never answered. */
uint64_t result_censored(const struct tally *t);
