/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The main thread's loop: it accepts and waits for signals.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>

#include "base/must.h"

struct event_base;

#define LOOP_SIGNALS 3 /* SIGTERM, SIGINT, SIGUSR1 end the loop */

struct loop {
    struct event_base *base;
    struct event signals[LOOP_SIGNALS];
};

/* False: no memory or descriptors. */
must_check bool loop_open(struct loop *l);
/* Returns after one of the signals. */
void loop_run(struct loop *l);
void loop_close(struct loop *l);

/* Version of the event library, for statistics. */
const char *loop_library(void);
