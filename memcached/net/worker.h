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

#include "base/hist.h"
#include "base/pool.h"
#include "net/budget.h"
#include "net/hold.h"
#include "net/idle.h"
#include "net/latency.h"
#include "net/limited.h"
#include "net/mail.h"
#include "net/migrate.h"
#include "net/shared.h"
#include "net/udp.h"
#include "qos/habit.h"
#include "qos/limiter.h"
#include "qos/pace.h"
#include "qos/sched.h"
#include "qos/slo.h"
#include "serve/env.h"
#include "sock/addr.h"
#include "sock/tls.h"

/* Buckets of the classes' histograms: 6 % wide. */
#define WORKER_CLASS_SUB_BITS 4
#define WORKER_CLASS_MAX_NS (10 * NSEC_PER_SEC)

/* Requests of one turn that pass on the admission of one before them. */
#define WORKER_SPARE_MAX 16

struct acceptor;
struct conn;

/* How a worker has spent its time since its passes are timed, which costs a clock read each.
 * A fraction is a difference of it over one of the clock. */
struct worker_time {
    ctr_t busy_ns; /* between two polls */
};

/* What the requests of a class came to. */
struct worker_class {
    ctr_t queued;         /* times that a connection entered the queue */
    ctr_t turns;          /* that were taken off it */
    ctr_t overdue;        /* of those, the ones that its wait brought forward */
    ctr_t left;           /* times that a connection was closed in the queue */
    ctr_t served;         /* requests, deferred or not */
    ctr_t served_udp;     /* ... of those, the ones that came as datagrams */
    ctr_t bytes;          /* of replies, and of values stored */
    struct hist *wait;    /* ns in the queue, a turn */
    struct hist *service; /* ns of a turn */
};

struct worker_qos_ctr {
    ctr_t deferred;      /* times a connection entered the deferred queue */
    ctr_t turns;         /* deferred turns served */
    ctr_t trickled;      /* reads that were charged for completing no request */
    ctr_t trickle_waits; /* times that a connection was queued for that */
    ctr_t rx_checked;    /* reads for which it was asked where the input arrived */
    ctr_t rx_local;      /* ... and it was on the CPU that read */
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
    bool is_now_fresh; /* `now` was read in this pass of the loop */
    bool is_draining;
    bool is_done;
    uint32_t reads_to_check; /* until the next that is asked where it arrived */
    nsec_t now;
    nsec_t woke_at;   /* when this pass began, that is, its first look at the clock */
    nsec_t polled_at; /* when the last timed pass ended; 0: none did */
    nsec_t
        heard_at; /* what this pass's poll has found arrived later, as far as is known */
    uint64_t asked_before; /* small requests that the SLO had seen when the pass began */
    struct pool pool;
    struct env env;
    struct sched sched; /* deferred connections */
    struct pace pace;
    struct habit_peers peers;
    nsec_t inline_ns; /* served where it was read, at most, before deferred work is */
    unsigned inline_turns; /* while there is deferred work */
    struct hold_list hold;
    struct conn *conns;  /* all, doubly linked */
    struct conn *doomed; /* closed, to be destroyed at the end of the pass */
    struct conn *first_handshake, *last_handshake; /* of TLS, oldest first */
    struct idle idle;
    struct migrate migrate;
    struct budget budget;
    struct udp *udp;     /* its sockets */
    struct guard *guard; /* of UDP; NULL: not wanted */
    _Alignas(64) struct serve_ctr ctr;
    struct worker_qos_ctr qos;
    struct limited limited;
    struct worker_class classes[CLASS_COUNT];
    struct latency latency;
    struct slo_watch slo;
    struct worker_time time;
    struct udp_ctr udp_ctr;
    struct tls_thread tls;
    _Atomic bool has_failed; /* the thread could not set itself up and has ended */
    _Atomic pid_t tid;
    _Atomic int busy_poll_error; /* errno; 0: set, or not asked for */
};

/* A new connection on its way from the listener. */
struct handoff {
    struct mail mail; /* first */
    int fd;
    const char *listen_addr;
    const char *tag; /* of the listener; empty: none */
    enum serve_binding binding;
    enum tls_mode tls;
    enum req_class declared; /* or CLASS_NONE */
    bool may_control;
    struct peer peer;
};

/* Starts the thread; pins it before it allocates anything. False with errno. */
must_check bool worker_start(struct worker *w, unsigned index, struct net_shared *shared);
/* Any thread: the limit has changed, look again at who waits for it. */
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

/* Monotonic time and the environment's clock, read once a pass. */
void worker_refresh_now(struct worker *w);
/* Reads the clocks again. */
nsec_t worker_read_clock(struct worker *w);
/* The worker has a connection less. */
void worker_forget(struct worker *w);
/* Counts where the input that has just been read from fd arrived. */
void worker_check_rx(struct worker *w, int fd);
/* After REFUSE: holds it for what has come with the request, and is of its class, as well? */
static inline bool
worker_refuses_rest(const struct worker *w)
{
    return w->limited.refuses_rest;
}
/* A request was admitted: those that come right behind it, of the same turn. An SLO that
 * refuses somebody wants to be asked for each. */
static inline struct limiter_spare
worker_spare(const struct worker *w)
{
    bool is_asked = slo_is_on(&w->shared->slo) && !w->slo.is_neutral;
    return limiter_spare_of(&w->limited.desk, is_asked ? 0 : WORKER_SPARE_MAX);
}
/* One of these; false: limited_ask is to be asked. */
static inline bool
worker_follow(struct worker *w, struct limiter_spare *spare, enum req_class class)
{
    bool has_slo = slo_is_on(&w->shared->slo);
    if ((unlikely(has_slo) && !w->slo.is_neutral) ||
        !limiter_follow(&w->limited.desk, spare, class)) {
        return false;
    }
    if (unlikely(has_slo)) {
        slo_note(&w->slo, class);
    }
    return true;
}
/* A deferred turn has no time for a step that takes as long as what was done since the last look
 * at the clock, which may be most of a turn: writing a piece is. Looks at it. */
must_check bool worker_is_turn_over(struct worker *w, const struct turn *turn);
/* A piece of a request is done: does the next one wait for the task's next turn? Without classes
 * that is so after each piece of a long one. */
static inline bool
worker_ends_piece(struct worker *w, const struct turn *turn)
{
    return turn->is_inline || (turn->has_long && turn->deadline == TURN_ENDLESS) ||
           worker_is_turn_over(w, turn);
}
/* After RAN_LONG: may it run in this turn? */
static inline bool
worker_admits_long(struct worker *w, struct turn *turn)
{
    bool is_admitted =
        pace_admits_long(&w->pace, turn->is_inline, turn->has_long, w->woke_at);
    turn->has_long = true;
    return is_admitted;
}
/* Queues the task's head request behind the other deferred ones of the class. */
void worker_defer(struct worker *w, struct task *t, enum req_class lane);
/* The task is closed: it leaves the queue in which it is. */
void worker_unqueue(struct worker *w, struct task *t);
/* A turn for a task right where it was read. Without classes it goes on until its requests are
 * served, as if there was no queue. */
static inline struct turn
worker_inline_turn(const struct worker *w)
{
    return (struct turn){.is_inline = w->shared->classes.is_on,
                         .lane = CLASS_SMALL,
                         .ready_at = w->woke_at,
                         .requests = w->shared->requests_per_event,
                         .deadline = TURN_ENDLESS};
}
/* Looks whether this pass has served enough where it was read, while other work waits.
 * libevent calls all that is ready in one go, and there may be thousands; it keeps what is
 * left, in order. */
void worker_look_behind(struct worker *w);
/* Such a turn is over. */
static inline void
worker_end_inline(struct worker *w, const struct turn *turn)
{
    if (turn->has_run) {
        pace_greet(&w->pace, w->woke_at);
    }
    if (unlikely(w->sched.length > 0)) {
        worker_look_behind(w);
    }
}
/* A request, or a part of one, has made so many bytes of output. */
static inline void
worker_account(struct worker *w, enum req_class class, uint64_t bytes, bool is_done)
{
    struct worker_class *k = &w->classes[class];
    ctr_add(&k->bytes, bytes);
    ctr_add(&k->served, is_done);
}
