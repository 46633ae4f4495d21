/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A whole run: threads connect and load in parallel, start together, send until the end and
 * are summed up. Called by the main thread, which meanwhile prints the progress line.
 */
#pragma once

#include <stdio.h>

#include "loadgen/options/options.h"
#include "loadgen/measure/result.h"
#include "loadgen/wire/target.h"
#include "loadgen/work/workload.h"

struct run_conf {
    const struct options *options;
    const struct workload *workload;
    const struct target *targets;
    bool has_progress;
    FILE *err; /* banners, progress and failures */
};

/* EXIT_VALID when the run (or the load alone) came to its end, with `result` filled in
 * (result_fini); else a line was printed and the exit status says of what kind. SIGINT ends
 * a run early. */
must_check enum exit_status run_all(const struct run_conf *conf, struct result *result);
