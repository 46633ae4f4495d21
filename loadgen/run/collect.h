/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a run came to, from what its threads counted and measured. The thread of run_once, all
 * threads at rest.
 */
#pragma once

#include "loadgen/run/run_state.h"
#include "loadgen/run/await.h"

/* Fills in `result`, its classes and their sum (result_fini), or prints a line. */
must_check enum exit_status collect_result(struct run *r, const struct run_spec *spec,
                                           enum run_end how, struct result *result);
/* When each part of the run went on; it ended at `end`. */
void collect_phases(const struct run *r, nsec_t end, struct result *result);
