/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A warm-up as long as it takes: runs of the same load, not reported, until MSER-5
 * (measure/steady.h) finds that the first half of them at most is to be cut off. The runs
 * that follow begin warm. Main thread.
 */
#pragma once

#include "loadgen/campaign/runner.h"

/* Fills in `result`. EXIT_INVALID with a line when it was interrupted, another status when a run
 * failed. `rates` as of a spec. */
must_check enum exit_status warmup_run(struct runner *runner, const double *rates,
                                       struct result_warmup *result);
