/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/leader/align.h"

#define DRIFT_SAMPLES_MIN 8
#define DRIFT_SPAN_MIN (4 * NSEC_PER_SEC)
/* Crystals differ by less; what shows more is noise. */
#define DRIFT_MAX 1e-3
/* Exchanges whose way was not longer than this times the shortest tell the drift. */
#define DRIFT_WAY 2

bool
align_add(struct align *a, const struct align_stamps *s)
{
    if (s->received < s->sent || s->answered < s->heard ||
        s->answered - s->heard > s->received - s->sent) {
        return false;
    }
    int64_t there = (int64_t)(s->heard - s->sent);
    int64_t back = (int64_t)(s->answered - s->received);
    a->samples[a->next].when = s->sent + (s->received - s->sent) / 2;
    a->samples[a->next].offset = there / 2 + back / 2;
    a->samples[a->next].way = (s->received - s->sent) - (s->answered - s->heard);
    a->next = (a->next + 1) % ALIGN_SAMPLES;
    a->count += a->count < ALIGN_SAMPLES ? 1 : 0;
    return true;
}

/* Least squares through the exchanges that were quick, relative to the best of them. */
static double
drift(const struct align *a, unsigned best)
{
    double n = 0, sum_t = 0, sum_o = 0, sum_tt = 0, sum_to = 0;
    nsec_t first = UINT64_MAX, last = 0;
    for (unsigned i = 0; i < a->count; i++) {
        if (a->samples[i].way > DRIFT_WAY * a->samples[best].way) {
            continue;
        }
        double t = (double)(int64_t)(a->samples[i].when - a->samples[best].when);
        double o = (double)(a->samples[i].offset - a->samples[best].offset);
        n += 1;
        sum_t += t;
        sum_o += o;
        sum_tt += t * t;
        sum_to += t * o;
        first = a->samples[i].when < first ? a->samples[i].when : first;
        last = a->samples[i].when > last ? a->samples[i].when : last;
    }
    double spread = n * sum_tt - sum_t * sum_t;
    if (n < DRIFT_SAMPLES_MIN || last - first < DRIFT_SPAN_MIN || spread <= 0) {
        return 0;
    }
    double slope = (n * sum_to - sum_t * sum_o) / spread;
    return slope > -DRIFT_MAX && slope < DRIFT_MAX ? slope : 0;
}

bool
align_estimate(const struct align *a, struct align_estimate *e)
{
    unsigned best = 0;
    nsec_t way_max = 0;
    if (a->count == 0) {
        return false;
    }
    for (unsigned i = 0; i < a->count; i++) {
        best = a->samples[i].way < a->samples[best].way ? i : best;
        way_max = a->samples[i].way > way_max ? a->samples[i].way : way_max;
    }
    *e = (struct align_estimate){
        .offset = a->samples[best].offset,
        .bound = a->samples[best].way / 2 + 1,
        .when = a->samples[best].when,
        .drift = drift(a, best),
        .way_max = way_max,
    };
    return true;
}

nsec_t
align_convert(const struct align_estimate *e, nsec_t leader)
{
    double since = (double)(int64_t)(leader - e->when);
    return leader + (nsec_t)e->offset + (nsec_t)(int64_t)(since * e->drift);
}
