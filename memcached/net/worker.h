/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A worker: one thread, one event base, one mailbox, the connections it was given, and the
 * loop that decides what runs next.
 *
 * Every field belongs to the worker's own thread once worker_start has returned, except the
 * mailbox (any thread pushes) and the counters and histogram (any thread reads).
 */
#pragma once

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/core.h"
#include "net/idle.h"
#include "net/worker_message.h"
#include "net/migrate.h"
#include "net/shared.h"
#include "net/udp.h"
#include "sock/addr.h"
#include "sock/tls.h"

struct acceptor;
struct conn;

struct worker_rx {
    uint32_t reads_to_check; /* until the next that is asked where it arrived */
    ctr_t checked;           /* reads for which it was asked where the input arrived */
    ctr_t local;             /* ... and it was on the CPU that read */
};

/* Connections whose TLS is not agreed yet, the oldest first. */
struct handshakes {
    struct conn *first, *last;
};

/* Wakes the worker for those that wait for tokens. */
struct wakeup {
    int timer_fd; /* -1: there is none */
    struct event event;
    nsec_t at; /* that it is set to; 0: it is not */
};

/* Requests of other threads to a worker, bits of `orders`. */
enum worker_order {
    ORDER_RELIMIT = 1,
    ORDER_DRAIN = 2,
    ORDER_STOP = 4,
    ORDER_ACCEPT = 8,
    ORDER_WATCH = 16, /* net/migrate.h */
    ORDER_GIVE = 32,
    ORDER_HOME = 64,
};

struct worker {
    unsigned index;
    pthread_t thread;
    struct net_shared *shared;
    struct event_base *base;
    struct mbox mbox;
    _Atomic unsigned orders;   /* set by any thread before it wakes the mailbox */
    struct acceptor *acceptor; /* its own; NULL: others accept. Set before ORDER_ACCEPT */
    struct event mbox_event;
    bool is_done;
    struct wakeup wakeup;
    struct conn *conns;  /* all, doubly linked */
    struct conn *doomed; /* closed, to be destroyed at the end of the pass */
    struct handshakes handshakes;
    struct idle idle;
    struct migrate migrate;
    struct udp *udp;     /* its sockets */
    struct guard *guard; /* of UDP; NULL: not wanted */
    struct core core;
    _Alignas(64) struct serve_ctr ctr;
    struct worker_rx rx;
    struct udp_ctr udp_ctr;
    struct tls_thread tls;
    _Atomic bool has_failed; /* the thread could not set itself up and has ended */
    _Atomic pid_t tid;
    _Atomic int busy_poll_error; /* errno; 0: set, or not asked for */
};

/* A new connection on its way from the listener. */
struct handoff {
    struct worker_message message; /* first */
    int fd;
    const char *listen_addr;
    const char *tag; /* of the listener; empty: none */
    enum serve_binding binding;
    enum tls_mode tls;
    enum req_class declared; /* or CLASS_NONE */
    bool may_control, is_local;
    struct peer peer;
};

/* Starts the thread; pins it before it allocates anything. False with errno. */
must_check bool worker_start(struct worker *w, unsigned index, struct net_shared *shared);
/* Any thread: the limit has changed, look again at the requests that wait for it. */
void worker_relimit(struct worker *w);
/* Any thread: accept connections yourself. */
void worker_accept(struct worker *w, struct acceptor *acceptor);
/* Any thread: another connection will be given to the worker, or created in it. */
void worker_expect(struct worker *w);
/* Any thread. The worker owns the handoff from here on. */
void worker_give(struct worker *w, struct handoff *handoff);
/* Any thread: finish what has been accepted, close, end the thread. */
void worker_drain(struct worker *w);
/* Any thread: end the thread now. */
void worker_stop(struct worker *w);
/* Any thread. */
void worker_order(struct worker *w, enum worker_order order);
/* Waits for the thread's end; after worker_drain or worker_stop. */
void worker_join(struct worker *w);
/* After all have been joined: they may have given each other connections to the last. */
void worker_fini(struct worker *w);

/* ---- for conn.c and udp.c ------------------------------------------------------------- */

/* The worker has a connection less. */
void worker_forget(struct worker *w);
/* Counts where the input that has just been read from fd arrived. */
void worker_check_rx(struct worker *w, int fd);
/* An inline turn is over. */
void worker_end_inline(struct worker *w, const struct turn *turn);
