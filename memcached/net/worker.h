/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A worker: one thread, one poller, one mailbox, the connections it was given. Its loop is in
 * net/worker_thread.c.
 *
 * Every field belongs to the worker's own thread once worker_start has returned, except the
 * mailbox (any thread pushes) and the counters and histogram (any thread reads).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "core/core.h"
#include "net/worker_message.h"
#include "net/shared.h"
#include "sock/addr.h"
#include "sock/guard.h"
#include "sock/poller.h"
#include "sock/tls.h"

struct acceptor;
struct conn;
struct listener;
struct udp;

#define READS_PER_RX_CHECK 64

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
    struct poll_source timer; /* fd -1: there is none */
    nsec_t at;                /* that it is set to; 0: it is not */
};

/* Walks of its connections in pieces. */
enum worker_walk { WALK_IDLE, WALK_MOVE, WALKS };

struct worker_conns {
    struct conn *first;        /* of all, doubly linked */
    struct conn *walks[WALKS]; /* where each goes on; NULL: at the first, or it is over */
    struct conn *closed;       /* closed, to be destroyed at the end of the pass */
};

/* Of its connections, which go to other workers (net/migrate.h). */
struct migrate {
    _Atomic uint64_t
        ask; /* struct migrate_request; with ORDER_GIVE. The last one counts */
    _Atomic unsigned arriving;   /* connections that others are about to push */
    _Atomic uint32_t load_milli; /* its load, as the balancer last saw it */
    ctr_t given;                 /* BALANCE_SHARES of its requests that went */
    ctr_t taken;                 /* connections that came */
    nsec_t homed_at; /* when the last ones left for where their packets arrive */
    ctr_t homed;     /* how many have */
};

/* One writer: the worker. */
struct udp_ctr {
    ctr_t received; /* datagrams */
    ctr_t sent;
    ctr_t dropped;    /* received: not a request, or one that is not complete */
    ctr_t refused;    /* requests that UDP does not serve, or not for this source */
    ctr_t guarded;    /* datagrams of sources that have used up their allowance */
    ctr_t aside;      /* times that a source's request was set aside to wait alone */
    ctr_t overflowed; /* datagrams of sources that had too many waiting */
    ctr_t unsent;     /* replies' datagrams that the kernel did not take */
};

/* Requests of other threads to a worker, bits of `orders`. */
enum worker_order {
    ORDER_RELIMIT =
        1, /* a limit has changed: look again at the requests that wait for it */
    ORDER_DRAIN = 2,  /* finish what has been accepted, close, end the thread */
    ORDER_STOP = 4,   /* end the thread now */
    ORDER_ACCEPT = 8, /* accept connections yourself (acceptor) */
    ORDER_WATCH = 16, /* see how many requests connections have: a rate needs two looks */
    ORDER_GIVE = 32,  /* net/migrate.h */
    ORDER_HOME = 64,
    ORDER_PASS = 128, /* nothing: that it is taken shows that the worker makes passes */
};

struct worker {
    unsigned index;
    pthread_t thread;
    struct net_shared *shared;
    struct poller poller;
    struct mbox mbox;
    _Atomic unsigned orders;   /* set by any thread before it wakes the mailbox */
    struct acceptor *acceptor; /* its own; NULL: others accept. Set before ORDER_ACCEPT */
    struct poll_source mbox_source;
    bool is_done;
    struct wakeup wakeup;
    struct worker_conns conns;
    struct handshakes handshakes;
    struct poll_source idle; /* a timer (net/idle.h); fd -1: there is none */
    struct migrate migrate;
    struct udp *udp;     /* its sockets */
    struct guard *guard; /* of UDP; NULL: not wanted */
    struct core core;
    struct pump_space *space;
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
    const struct listener *from;
    bool may_control, is_local;
    struct peer peer;
};

/* Any thread: another connection will be given to the worker, or created in it. */
void worker_expect(struct worker *w);
/* Any thread. The worker owns the handoff from here on. */
void worker_give(struct worker *w, struct handoff *handoff);
/* Any thread. */
void worker_order(struct worker *w, enum worker_order order);
void workers_order(struct worker *workers, unsigned count, enum worker_order order);
/* Any thread: asks for a pass. False: there was none since the last time. */
must_check bool worker_ping(struct worker *w);

/* ---- for what it serves --------------------------------------------------------------- */

/* The worker has a connection less. */
void worker_forget(struct worker *w);
/* Counts where the input that has just been read from fd arrived. */
void worker_check_rx(struct worker *w, int fd);
/* An inline turn is over. */
void worker_end_inline(struct worker *w, const struct turn *turn);
