/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The main thread's loop: it accepts, waits for signals and gives the store its upkeep.
 */
#pragma once

#include <event2/event_struct.h>
#include <stdbool.h>

#include "base/must.h"

struct event_base;
struct store;

#define LOOP_SIGNALS 3 /* SIGTERM, SIGINT, SIGUSR1 end the loop */

struct loop {
    struct event_base *base;
    struct store *store;
    struct event signals[LOOP_SIGNALS];
    struct event upkeep;
};

/* False: no memory or descriptors. */
must_check bool loop_open(struct loop *l, struct store *store);
/* Returns after one of the signals. */
void loop_run(struct loop *l);
void loop_close(struct loop *l);

/* Version of the event library, for statistics. */
const char *loop_library(void);
