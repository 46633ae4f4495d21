/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The runs that a command line asks for: one; some alike; one at a share of the peak, which
 * is measured before; a scan over loads; a search. Reports them as they come. Main thread.
 */
#pragma once

#include <stdio.h>

#include "loadgen/campaign/output.h"
#include "loadgen/run/run.h"

/* Makes one run, as run_once does. */
typedef enum exit_status campaign_once(void *arg, const struct run_spec *spec,
                                       struct result *result);

struct campaign_conf {
    const struct options *options;
    campaign_once *run_one;
    void *arg;
    struct output *output; /* reports */
    FILE *err;             /* failures */
    FILE *log;             /* how a search goes on; NULL: not wanted */
};

must_check enum exit_status campaign_run(const struct campaign_conf *conf);
