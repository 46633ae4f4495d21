/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/search/scan.h"

#include <math.h>

#include "base/num.h"

#define PERCENT 100.0
#define RATE_MAX 1e8
/* The last point may be missed by as much of a step: 10 % ten times is not exactly 1. */
#define STEP_SLACK 1e-6

static bool
parse_load(const char *text, size_t len, double *load, bool *is_share)
{
    uint64_t rate;
    *is_share = len > 0 && text[len - 1] == '%';
    if (*is_share) {
        bool is_good = num_double(text, len - 1, load);
        *load /= PERCENT;
        return is_good;
    }
    if (num_scaled(text, len, 1000, &rate)) {
        *load = (double)rate;
        return true;
    }
    return num_double(text, len, load);
}

const char *
scan_parse(void *range, const char *text)
{
    static const char shape[] = "a scan is FIRST:LAST:STEP, all rates or all percentages";
    struct scan_range *r = range;
    double load[3] = {0};
    bool is_share[3];
    const char *p = text;
    for (int i = 0; i < 3; i++) {
        size_t len = strcspn(p, ":");
        if (!parse_load(p, len, &load[i], &is_share[i]) || (p[len] == ':') != (i < 2) ||
            is_share[i] != is_share[0]) {
            return shape;
        }
        p += len + 1;
    }
    *r = (struct scan_range){load[0], load[1], load[2], is_share[0], true};
    if (!(r->first > 0) || !(r->last >= r->first) || !(r->step > 0) ||
        r->last > RATE_MAX) {
        return "a scan goes up from a load above 0 by a step above 0";
    }
    if ((r->last - r->first) / r->step >= SCAN_POINTS_MAX) {
        return "a scan has at most 10000 points";
    }
    return NULL;
}

unsigned
scan_count(const struct scan_range *r)
{
    return (unsigned)floor((r->last - r->first) / r->step + STEP_SLACK) + 1;
}

void
scan_fill(const struct scan_range *r, enum scan_order order, struct rng *rng,
          double *points)
{
    unsigned n = scan_count(r);
    for (unsigned i = 0; i < n; i++) {
        points[order == SCAN_DOWN ? n - 1 - i : i] = r->first + i * r->step;
    }
    for (unsigned i = n; order == SCAN_SHUFFLED && i > 1; i--) {
        unsigned j = (unsigned)rng_below(rng, i);
        double swapped = points[i - 1];
        points[i - 1] = points[j];
        points[j] = swapped;
    }
}
