/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * An agent: waits for leaders and does what one of them says, one at a time. The process
 * only accepts; each leader is served by a child of it, which can end at any time and then
 * leaves nothing behind, no connection to a server in particular.
 */
#pragma once

#include "loadgen/options/options.h"

/* Until SIGINT or SIGTERM: EXIT_VALID. Otherwise a line was printed. */
must_check enum exit_status agent_run(const struct options *o, int argc, char **argv);
