/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Accepting: takes connections from listening sockets and gives each to the worker that
 * qos/steer.h chooses. The main thread has an acceptor; with a listener for each worker
 * (--steer=reuseport) every worker has one too.
 *
 * Owner: the thread whose poller it was started on; before and after, the thread that
 * opened the listeners.
 */
#pragma once

#include <stdbool.h>

#include "net/hosts.h"
#include "qos/class.h"
#include "qos/steer.h"
#include "serve/env.h"
#include "sock/poller.h"
#include "sock/registry.h"

struct acceptor;
struct handoff;
struct listen;
struct worker;

/* A listening socket. */
struct listener {
    struct poll_source source;
    bool is_watched;
    struct registry_entry entry;
    enum serve_binding binding;
    enum tls_mode tls;
    struct hosts_marks marks;    /* of what is accepted here */
    char tag[HOSTS_TAG_MAX + 1]; /* empty: none */
    bool is_further;             /* of an address that a listener before it has told of */
    struct acceptor *acceptor;
    struct listener *next; /* of the same acceptor */
};

struct acceptor {
    struct listen *listen;
    struct poller *poller; /* NULL: not started, or closed */
    struct worker *self;   /* whose thread it is; NULL: main's */
    int cpu;               /* of self, as the kernel was told */
    struct listener *listeners;
    bool is_paused; /* out of connections or descriptors: nothing is accepted */
    struct poll_source resume; /* a timer */
    struct handoff *held; /* accepted, and waits for a place under the limit; or NULL */
    struct steer steer;
};

void acceptor_init(struct acceptor *a, struct listen *listen);
/* Accepts on the calling thread's poller; self: the worker whose thread it is, NULL: main's.
 * False: no memory or descriptor; to be closed then. */
must_check bool acceptor_start(struct acceptor *a, struct poller *poller,
                               struct worker *self);
/* No new connections from here on; the sockets are closed. May be called again. */
void acceptor_close(struct acceptor *a);
