/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What searches and scans take from a run: how it did against a goal, and which class's rate
 * they vary. Main thread.
 */
#pragma once

#include "loadgen/measure/result.h"
#include "loadgen/options/options.h"
#include "loadgen/search/goal.h"
#include "loadgen/search/search.h"

/* The class whose rate is varied: the only one, or the only one without a rate of its own,
 * or the one that the goal names. NULL and `which`, or a sentence. */
must_check const char *outcome_find_class(const struct options *o, const struct goal *g,
                                          unsigned *which);

/* How the run did. `varied`: the class whose rate was varied; `seconds` it has taken. */
struct search_outcome outcome_of_run(const struct result *r, const struct options *o,
                                     const struct goal *g, unsigned varied,
                                     double seconds);
