/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What came to a counters in an interval, as fields of a frame: counters and buckets as
 * differences in varints, empty buckets left out; minimum, maximum and sums as they stand,
 * so that adding up all deltas gives the counters itself, to the last bit. Pure.
 */
#pragma once

#include "base/must.h"
#include "loadgen/measure/counters.h"
#include "loadgen/swarm/frame.h"

/* Adds what `now` has beyond `before`. Both belong to the caller's thread. */
void delta_put(struct frame_out *o, struct counters *now, struct counters *before);
/* The same, and then `before` is as `now`. */
void delta_put_next(struct frame_out *o, struct counters *now, struct counters *before);
/* Adds a frame's delta to `sum`. False: it is not one, `sum` is as it was. */
must_check bool delta_add(struct counters *sum, const struct frame *f);
/* Whether delta_add would. */
must_check bool delta_is_good(struct counters *sum, const struct frame *f);
/* Tells counters apart: equal ones have the same. */
uint64_t delta_digest(struct counters *t);
/* Tells apart builds whose counters are laid out differently. */
uint64_t delta_shape(void);

/* So many counters. */
must_check struct counters *delta_counters_create(unsigned count);
/* Also of NULL. */
void delta_counters_destroy(struct counters **counters, unsigned count);
