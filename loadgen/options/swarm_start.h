/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a leader and an agent begin with. Start-up thread.
 */
#pragma once

#include <signal.h>

#include "loadgen/options/options.h"
#include "loadgen/swarm/seal.h"

/* A line on stderr; EXIT_UNREACHABLE. */
enum exit_status swarm_fail(const char *what);
/* The key of --key-file; of length 0 without. EXIT_VALID, or a line. */
must_check enum exit_status swarm_read_key(struct seal_key *key, const char *file);
/* The signals that end such a process. */
void swarm_signals(sigset_t *signals);
