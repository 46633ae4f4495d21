/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Waiting for the end of a run, telling progress and asking the caller meanwhile. The thread
 * of run_once.
 */
#pragma once

#include "loadgen/run/run_state.h"

enum run_end {
    RUN_DONE,
    RUN_OVER,   /* all threads have come to the end of their traces */
    RUN_ENOUGH, /* the caller wants no more */
    RUN_SIGNAL,
};

/* SIGINT and SIGTERM, which end a run early. */
void await_signals(sigset_t *signals);
/* Waits for one of them. True when one came; the next one ends the process, whatever it
 * does. */
bool await_signal(const struct run *r, int timeout_ms);
/* Until the end of the window, or sooner; threads are told then. The tick is called each
 * `tick_length` (struct run_spec). */
enum run_end await_end(struct run *r, const struct run_spec *spec, nsec_t tick_length);
