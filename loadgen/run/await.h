/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Waiting for the end of a run, telling progress and asking the caller meanwhile. The thread
 * of run_once.
 */
#pragma once

#include "loadgen/run/run_state.h"

enum watch_end {
    WATCH_DONE,
    WATCH_OVER,   /* all threads have come to the end of their traces */
    WATCH_ENOUGH, /* the caller wants no more */
    WATCH_SIGNAL,
};

/* Waits for SIGINT or SIGTERM. True when one came; the next one ends the process, whatever it
 * does. */
bool watch_signal(const struct run *r, int timeout_ms);
/* Until the end of the window, or sooner; threads are told then. The tick is called each
 * `tick_length` (struct run_shot). */
enum watch_end watch_run(struct run *r, const struct run_shot *shot, nsec_t tick_length);
