/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The clients that watch the live log, and the thread that serves them: it takes the events
 * out of the workers' rings and writes them to the sockets. A connection that becomes a
 * watcher leaves its worker for good; what the client still sends is read and thrown away.
 *
 * The thread sleeps while no client watches.
 */
#pragma once

#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/mbox.h"
#include "serve/watch.h"
#include "sock/registry.h"
#include "sock/tls.h"

struct event_base;
struct
    watcher; /* a client; owned by its worker until watchers_give, then by the thread */

/* Everything but mbox, is_stopping and the first three fields is the thread's own. */
struct watchers {
    struct watch *watch;
    struct registry *registry;
    _Atomic unsigned *open_conns; /* one less for each watcher that leaves */
    struct mbox mbox;
    _Atomic bool is_stopping;
    pthread_t thread;
    struct event_base *base;
    struct event mbox_event;
    struct event tick; /* runs while there are watchers */
    struct tls_thread tls;
    struct watcher *first;
};

/* Starts the thread. False: no memory, descriptors or threads. */
must_check bool watchers_start(struct watchers *ws, struct watch *watch,
                               struct registry *registry, _Atomic unsigned *open_conns,
                               const struct tls *tls);
/* Ends the thread and closes all watchers; no other thread may give any more. */
void watchers_stop(struct watchers *ws);
/* struct watch_conf.wake; ctx is the struct watchers. Any thread, once it was started. */
void watchers_wake(void *ctx);

/* Any thread: prepares for the connection of `entry` to become a watcher, which has its place
 * (watch_enter) already. NULL: no memory. */
must_check struct watcher *watcher_create(struct watchers *ws, uint32_t types,
                                          const struct registry_entry *entry);
/* It came to nothing: the connection closed first. Gives up the place. */
void watcher_drop(struct watchers *ws, struct watcher *watcher);
/* Any thread: hands the connection over, with its descriptor, its session of TLS if it has
 * one, and its line in the registry, where `old` stood for it. */
void watchers_give(struct watchers *ws, struct watcher *watcher,
                   struct registry_entry *old, struct tls_session *tls);
