/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The main thread's loop: it accepts and waits for signals.
 */
#pragma once

#include <event2/event_struct.h>

#include "base/must.h"
#include "sock/poller.h"

struct event_base;

#define LOOP_SIGNALS 3 /* SIGTERM, SIGINT, SIGUSR1 end the loop */

typedef void loop_hangup(void *ctx);
typedef void loop_wake(void *ctx);

struct loop {
    struct event_base *base;
    struct event signals[LOOP_SIGNALS];
    struct poller poller; /* of its listeners */
    struct event polled;
    struct event hangup; /* in use when on_hangup is not NULL */
    loop_hangup *on_hangup;
    void *ctx;
    struct event wake; /* in use when on_wake is not NULL */
    loop_wake *on_wake;
    void *wake_ctx;
    int wake_fd;  /* eventfd */
    int ended_by; /* the signal */
};

/* A base of events for one thread, without locks, to be freed with event_base_free. NULL: no memory
 * or descriptors. */
struct event_base *loop_base(void);
/* False: no memory or descriptors. */
must_check bool loop_open(struct loop *l);
/* SIGHUP calls on_hangup(ctx) in the loop. False: no memory or descriptors. */
must_check bool loop_watch_hangup(struct loop *l, loop_hangup *on_hangup, void *ctx);
/* loop_call calls on_wake(ctx) in the loop, once for several calls. Likewise. */
must_check bool loop_watch_calls(struct loop *l, loop_wake *on_wake, void *ctx);
/* Any thread, between loop_watch_calls and loop_close. */
void loop_call(struct loop *l);
/* Returns after one of the signals, which ended_by then names. */
void loop_run(struct loop *l);
void loop_close(struct loop *l);

/* Version of the event library, for statistics. */
const char *loop_library(void);
