/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The points of a scan over loads, in the order in which they are measured. Pure.
 */
#pragma once

#include "base/must.h"
#include "base/rng.h"

#define SCAN_POINTS_MAX 10000

struct scan_range {
    double first, last, step; /* requests a second, or shares of the peak */
    bool is_share;
    bool is_given; /* else all is zero */
};

enum scan_order {
    SCAN_UP,
    SCAN_DOWN,
    SCAN_SHUFFLED,
};

/* mutilate's "1000:10000:1000", or "10%:100%:10%" of the peak. NULL, or a sentence saying
 * what is wrong. */
must_check const char *scan_parse(void *range, const char *text);

/* first, first + step, ... up to last. */
unsigned scan_count(const struct scan_range *r);
/* The loads in order, scan_count of them; `rng` for SCAN_SHUFFLED only. */
void scan_fill(const struct scan_range *r, enum scan_order order, struct rng *rng,
               double *points);
