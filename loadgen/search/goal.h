/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a search asks of a server: a percentile (or the mean) of the latency below a limit,
 * and few errors. Pure.
 */
#pragma once

#include "base/must.h"

#define GOAL_CLASS_MAX 64

/* Whose latencies count. */
enum goal_scope {
    GOAL_ALL,   /* all requests */
    GOAL_READS, /* gets only, as mutilate has it */
};

struct goal {
    bool is_given; /* else all is zero */
    bool is_mean;
    double q;        /* 0.99 for the 99th percentile; unused for the mean */
    double limit_ns; /* 0: `times` of the latency at a low load */
    double times;
    double errors_max; /* share of the requests */
    enum goal_scope scope;
    char class_name[GOAL_CLASS_MAX]; /* "": no class, or the only one */
};

/* "p99.9:500us[,class=NAME][,err<0.01%]", units ns, us, ms, s or x (times the latency at a
 * tenth of the peak); mutilate's "99:1000" is of gets, in microseconds; "avg:500us". NULL,
 * or a sentence saying what is wrong. */
must_check const char *goal_parse(void *goal, const char *text);
/* "p99.9 <= 500 us". At most `size` bytes with the 0. */
void goal_describe(const struct goal *g, char *dst, unsigned size);
