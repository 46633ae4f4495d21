/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The runs that a command line asks for: one; some alike; one at a share of the peak, which
 * is measured before; a scan over loads; a search. Reports them as they come. Main thread.
 */
#pragma once

#include "loadgen/campaign/output.h"

/* Connects, loads, runs and reports. How the process is to end; there was a line when a run was
 * not made. */
must_check enum exit_status campaign_run(const struct options *o, struct output *output);
