/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What searches and scans take from a run: how it did against a goal. Main thread.
 */
#pragma once

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/search/goal.h"
#include "loadgen/search/search.h"

/* How the run did, which has taken so many seconds. */
struct search_outcome outcome_of_run(const struct result *r, const struct options *o,
                                     const struct goal *g, double seconds);
