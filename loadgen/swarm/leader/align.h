/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an agent's clock shows when the leader's shows a time: from exchanges of four stamps
 * as NTP has them (RFC 5905),
 *
 *     leader   sent ---.                        .---> received
 *     agent             '--> heard ... answered'
 *
 * of which those with the shortest way there and back are the most exact: the offset is in
 * error by at most half of it. The slope of the offsets over time is the clocks' drift.
 * Only starts and rows of reports are aligned so; latencies never mix clocks. Pure.
 */
#pragma once

#include "base/clock.h"

#define ALIGN_SAMPLES 64 /* the newest are kept */

struct align_stamps {
    nsec_t sent, received;  /* leader's clock */
    nsec_t heard, answered; /* agent's clock */
};

struct align {
    struct {
        nsec_t when; /* leader's clock */
        int64_t offset;
        nsec_t way; /* there and back */
    } samples[ALIGN_SAMPLES];
    unsigned count, next;
};

struct align_estimate {
    int64_t offset; /* agent's clock minus leader's, at `when` */
    nsec_t bound;   /* the offset is not off by more */
    nsec_t when;    /* leader's clock, of the exchange that it is from */
    double drift;   /* seconds a second; 0 until known */
    nsec_t way_max; /* the longest way seen */
};

/* False: the stamps are inconsistent, nothing was added. */
bool align_add(struct align *a, const struct align_stamps *s);
/* False: no exchange yet. */
bool align_estimate(const struct align *a, struct align_estimate *e);
/* The agent's time when the leader's is `leader`. */
nsec_t align_convert(const struct align_estimate *e, nsec_t leader);
