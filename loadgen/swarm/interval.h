/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The intervals by which the processes of a swarm report a run, numbered from 1 by the leader's
 * time: number n ends n lengths after the start, the last one with the run. Pure.
 */
#pragma once

#include <stdint.h>

#include "base/clock.h"

/* How long intervals are to be for a run so long, of which rows so long are shown: 10 to
 * 1000 ms, a whole number of them a row unless rows are shorter. */
nsec_t interval_length(nsec_t time, nsec_t row_length);
/* The number of the last interval of a run. */
uint64_t interval_last(nsec_t time, nsec_t length);
/* The number of the interval that ends about now, `since` the start: none is after the last
 * but one, whose reports are not the final ones. */
uint64_t interval_number(nsec_t since, nsec_t time, nsec_t length);
