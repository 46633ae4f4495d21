/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The rate of an open loop as a function of time. A schedule is a row of points between which
 * the rate is a straight line; two points at one time are a jump. It bends time: arrivals of
 * any law, made at a rate that never changes, are moved to where the integral of the rate
 * has come as far (the inverse of the cumulative rate), so that a law keeps its shape and
 * counts follow the integral exactly. Pure; constant once settled, a cursor is its owner's.
 *
 *     rate            the warm-up keeps the first rate, but for its quiet end
 *       |________      /\
 *       |        |    /  \____
 *       |________|___/________\___ time
 *     begin   quiet start        end of the points: the last rate holds, or all repeats
 */
#pragma once

#include "base/must.h"

#define SCHEDULE_POINTS_MAX 200000

struct schedule_point {
    double at_s; /* from the start of the measured window; once settled, from begin */
    double rate; /* a second; a share of the rate given elsewhere when is_share */
    bool is_share;
    double sum; /* settled: integral of the rate up to here */
};

struct schedule {
    struct schedule_point *points; /* times never go back */
    unsigned count;
    bool is_periodic;
    bool is_stretched; /* times are shares of the run's length */
    unsigned repeat;   /* settled: the first point of the period */
    double mean;       /* settled: rate in the mean of the measured window */
};

/* "const[:RATE]", "ramp:A:B:TIME", "steps:A:B:STEP:TIME" (each step lasts TIME),
 * "square:LOW:HIGH:PERIOD:DUTY" (DUTY is the share of HIGH, which comes first),
 * "triangle:LOW:HIGH:PERIOD", "qtriangle:LOW:HIGH:PERIOD:STEP", "sine:LOW:HIGH:PERIOD" (both
 * begin at LOW; the sine in 720 straight lines), "etc-day[:SECONDS]" (a day of Facebook's ETC
 * pool, in so many seconds or the length of the run), "file:CSV" (lines of a time and the
 * rate from then on). Rates are N[k|m] a second or N%; times seconds, or N with us, ms, s, m
 * or h. NULL, or a sentence saying what is wrong, perhaps in a buffer that the next call
 * overwrites; then there is nothing to free. */
must_check const char *schedule_parse(void *schedule, const char *text);
void schedule_fini(struct schedule *s);
/* False when it says nothing but the rate given elsewhere. */
bool schedule_varies(const struct schedule *s);
/* Whether a rate must be given elsewhere. */
bool schedule_has_shares(const struct schedule *s);

/* The highest rate there is, when `rate` is what 100 % is. */
double schedule_peak(const struct schedule *s, double rate);

struct schedule_run {
    double rate;      /* given elsewhere: what 100 % is */
    double lead_s;    /* warm-up before the window */
    double quiet_s;   /* its end, in which nothing is sent; at most lead_s */
    double time_s;    /* length of the window */
    double lead_rate; /* of the warm-up; 0: that which the window begins with */
};

/* The schedule of one run, which all that follows needs: *s becomes a copy of `from`, to be
 * freed. NULL, or a sentence (too high a rate, no requests); then nothing is to be freed. */
must_check const char *schedule_settle(struct schedule *s, const struct schedule *from,
                                       const struct schedule_run *run);

/* Where one stream of arrivals has come to; all zero at first. */
struct schedule_cursor {
    unsigned at;    /* the piece between points at and at + 1 */
    uint64_t turns; /* periods gone by */
};

/* Seconds from begin until the integral of the rate is `sum`; INFINITY when it never is. The
 * sums of one cursor never go back. */
double schedule_time(const struct schedule *s, struct schedule_cursor *c, double sum);
/* The integral of the rate from begin until `time_s` later, and the rate there. */
double schedule_sum(const struct schedule *s, double time_s);
double schedule_rate(const struct schedule *s, double time_s);
