/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whether a run with --until knows enough to end. Its thread only.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "loadgen/measure/result.h"
#include "loadgen/run/sampler.h"
#include "loadgen/options/options.h"

#define STOPPING_LOOK (50 * NSEC_PER_MSEC) /* between looks, for such a run */

struct stopping {
    nsec_t asked; /* the look that is next after the one it was asked for last */
    bool was_sure;
};

/* After each look; all zero at the begin. Sure twice in a row: one look may be lucky. */
bool stopping_is_reached(struct stopping *s, const struct options *o,
                         const struct sampler *w);
/* Of all that was measured, the last replies too; r->until is not NULL. */
bool stopping_is_met(const struct result *r);
