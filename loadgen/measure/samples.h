/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Every latency of a run, one by one, for those who want more than a histogram. Memory is
 * set aside before and touched as it fills; what does not fit is counted. Its sending
 * thread's until the run is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/must.h"

#define SAMPLES_MAX (UINT64_C(16) << 20) /* a thread: 256 MiB */

struct sample {
    nsec_t start;     /* after the start of the window */
    uint64_t latency; /* ns */
};

struct samples {
    struct sample *all; /* NULL: none are wanted */
    uint64_t count, dropped;
};

/* False when memory is short. */
must_check bool samples_init(struct samples *s);
void samples_fini(struct samples *s);

static inline void
samples_add(struct samples *s, nsec_t start, uint64_t latency)
{
    if (likely(s->all == NULL)) {
        return;
    }
    if (s->count == SAMPLES_MAX) {
        s->dropped++;
    } else {
        s->all[s->count++] = (struct sample){start, latency};
    }
}
