/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The checks of a result: their names, and the limits beyond which a run says more about the
 * client than about the server. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/must.h"

enum result_check {
    CHECK_ANSWERS,
    CHECK_CPU,
    CHECK_RATE,
    CHECK_ADHERENCE,
    CHECK_ERRORS,
    CHECK_COMPLETE, /* not interrupted */
    CHECK_STEADY,   /* latency and hit ratio are those of one state */
    CHECK_SEARCH,   /* found a rate, and not only how much the client can send */
    CHECK_AGENTS,   /* none was lost */
    CHECK_VALUES,   /* what was looked at is what was stored; apart from errors */
    CHECK_READER,   /* a trace was read before its requests were due */
    CHECK_ARRIVALS, /* requests came as the schedule had them, not in clumps */
    CHECK_LITTLE,   /* Little's law: none was forgotten, and no clock was wrong */
    CHECK_LATENESS, /* the percentiles are the server's, not the client's */
    CHECK_STEAL,    /* the CPUs were there, and not with another virtual machine */
    CHECK_CPU_WAIT, /* threads that wanted a CPU had one */
    CHECK_SERVED,   /* the connections that were asked had an answer at least */
    CHECKS,
};

struct check {
    bool applies; /* rate and the like: only to an open loop */
    bool is_good;
    double value, limit;
};

/* "achieved_rate", for the verdict and for --check. */
const char *check_name(enum result_check check);

/* Limits of all checks, for changing: those that none was asked for. */
struct check_limits {
    double limit[CHECKS];
    bool is_off[CHECKS];
};

void check_limits_init(struct check_limits *l);
/* "NAME:LIMIT" or "NAME:off", with commas; limits are shares ("0.02", "2%") or numbers. NULL,
 * or a sentence saying what is wrong. */
must_check const char *check_limits_parse(struct check_limits *l, const char *text);

/* A check whose value must not be above, or below, its limit. */
struct check check_at_most(const struct check_limits *l, enum result_check check,
                           bool applies, double value);
struct check check_at_least(const struct check_limits *l, enum result_check check,
                            bool applies, double value);
