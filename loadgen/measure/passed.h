/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Requests that were passed over while the window goes on. Each waits for its end, of which it is
 * not known when it comes: a run may be stopped, or have its answer. So what is kept is when they
 * were meant to start, in bins of equal length; when there are more than PASSED_BINS, each two
 * become one. All in a bin count as its latest: a wait is never too long, and too short by no more
 * than one part in PASSED_BINS / 2 of the window, or a millisecond. Its thread only.
 */
#pragma once

#include "base/clock.h"
#include "base/hist.h"

#define PASSED_BINS 2048

struct passed {
    nsec_t start; /* of the first bin */
    nsec_t width; /* of each */
    struct {
        uint64_t count;
        nsec_t latest;
    } bins[PASSED_BINS];
};

/* The window begins at `start`. */
void passed_init(struct passed *p, nsec_t start);
/* One that was intended for then, at least `start`. */
void passed_add(struct passed *p, nsec_t intended);
/* The window has ended: adds how long each was waited for. */
void passed_settle(const struct passed *p, nsec_t end, struct hist *waits);
