/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether requests came as the schedule had them. What the schedule wanted follows the law
 * that was asked for, exactly (its seed says so); so the gaps between intended starts are
 * held against those between the times of issue.
 *
 * A client takes some microseconds to send, and sends together what became due meanwhile:
 * harmless, and yet another law to a test that looks at single gaps of a microsecond. So
 * gaps are taken over as many requests as are meant to come in GAPS_SPAN, and laws count as
 * apart where a gap is off by more than a quarter of their mean: the Kolmogorov-Smirnov
 * distance with that much play sideways. A client that sends in clumps of some hundred
 * microseconds or more is far beyond it, at every rate; with n in the thousands a plain p
 * tells apart what makes no difference, so it is shown and not judged.
 *
 * The recording end is one sending thread's; comparing is pure.
 */
#pragma once

#include "base/clock.h"
#include "base/hist.h"

#define GAPS_SPAN (200 * NSEC_PER_USEC)
#define GAPS_PLAY 0.25 /* of the mean gap */
#define GAPS_LEAST 20  /* below so many nothing is said */

struct gaps {
    unsigned each;  /* requests of a gap; 0: not recorded */
    unsigned count; /* since the last one that was recorded */
    nsec_t last;
};

/* How many requests make a gap, of a stream of so many a second. */
unsigned gaps_each(double rate);

/* The next request of the stream, at `when`. */
static inline void
gaps_note(struct gaps *g, struct hist *into, nsec_t when)
{
    if (g->each == 0 || ++g->count < g->each) {
        return;
    }
    if (g->last != 0) {
        hist_record(into, when > g->last ? when - g->last : 0);
    }
    g->last = when;
    g->count = 0;
}

struct gaps_apart {
    bool is_known; /* enough gaps of both kinds */
    double apart;  /* distance with play: 0 alike, 1 nothing in common */
    double ks;     /* without it */
    double p;      /* of a distance as large by chance, between independent samples */
    /* Index of dispersion: the squared coefficient of variation of single gaps as far as they
     * are independent; of an exponential law 1. */
    double scv_intended, scv_issued;
    double mean_ns; /* of the intended ones */
};

/* Both hold gaps of `each` requests, in buckets alike. */
struct gaps_apart gaps_compare(const struct hist *intended, const struct hist *issued,
                               unsigned each);
