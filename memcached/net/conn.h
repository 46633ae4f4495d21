/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A client connection: descriptor, event, session, buffers. Owner: its worker's thread.
 *
 * There is no state enum. Three independent facts describe a connection: it is in a queue or
 * not (pump.work), output is pending or not (pump.out), it has a closing reason or not.
 */
#pragma once

#include "core/pump.h"
#include "net/worker_message.h"
#include "qos/homing.h"
#include "serve/verbose.h"
#include "sock/addr.h"
#include "sock/poller.h"
#include "sock/registry.h"

struct conn;
struct tls_session;
struct watcher;
struct worker;

enum close_reason {
    CLOSE_NONE,
#define CLOSE(id, sentence, told) CLOSE_##id,
#include "net/close.def"
#undef CLOSE
};

/* What reading or writing came to. */
enum io {
    IO_OK,
    IO_AGAIN, /* nothing more before the next event */
    IO_CLOSED,
    IO_STUCK, /* of reading: output has to go first, and the socket is full */
    IO_LATER, /* of reading: not in a turn where the request was read */
};

/* What edge-triggered events and the system calls since have told of the socket. */
struct conn_edge {
    bool is_readable; /* an edge was seen that no short read has used up */
    bool is_blocked;  /* the socket took less than it was given: an edge will come */
    bool has_hangup;  /* the peer has closed its side: no more edges, read to the end */
    /* A reset is reported like readable input. When input came before the reset, a short
     * read would use up the edge and the connection would stay for ever; so after an edge the
     * socket has to answer once more: a successful send proves it alive, else a recv is
     * spent. */
    bool must_probe;
};

/* What a connection has more when it speaks TLS. */
struct conn_tls {
    struct tls_session *session;
    uint32_t since;           /* relative clock, of the accept */
    struct conn *next, *prev; /* in the worker's list of those in a handshake */
};

/* What is known of a connection's requests; its worker's thread. */
struct migrate_rate {
    uint32_t counted; /* requests until `since`; wraps, as pump.served */
    float per_second;
    nsec_t since;
};

/* A connection that is to go, but was not between two requests when it was looked at: it goes
 * when it is; its turns are of one request until then. */
struct migrate_pending {
    bool is_set;
    uint8_t reason; /* enum balance_reason */
    uint16_t to;
    uint32_t part; /* of its worker's requests, that are its own: BALANCE_SHARES */
    nsec_t until;  /* then it stays after all: loads have changed */
};

/* Of a connection that has been moved, is to move, or was compared with where its packets arrive. */
struct migrate_state {
    struct migrate_pending pending;
    struct homing homing;
    nsec_t moved_at; /* 0: never */
    bool is_home;    /* ... to where its packets arrive */
};

struct conn {
    struct pump pump; /* first: the worker's queues hold it by this */
    struct worker *worker;
    struct poll_source source; /* edge-triggered, registered while a worker has it */
    struct conn_tls *tls;      /* NULL: plain */
    struct conn_edge edge;
    bool is_tcp : 1;
    bool is_parked : 1;  /* its request waits for another thread, which has `message` */
    bool is_at_rest : 1; /* as conn_is_at_rest would say; it may be queued to be read */
    uint8_t
        leaving; /* enum close_reason: nothing more is read; closes when its output is sent */
    uint8_t closing;         /* enum close_reason */
    uint8_t drain_reads;     /* done since the worker began to drain */
    struct verbose verbose;  /* of what is in its output, for -vv */
    struct watcher *watcher; /* what it becomes when its output is sent, or NULL */
    struct registry_entry entry;
    struct migrate_rate rate;
    struct migrate_state *move; /* NULL for most */
    union {
        struct worker_message
            message;              /* by which it goes to another worker, or goes on */
        struct conn *next_closed; /* it goes nowhere */
    };
    struct conn *next, *prev; /* the worker's list */
    char addr[];              /* of the entry */
};

/* It is to go to another worker. */
static inline bool
conn_is_leaving_worker(const struct conn *c)
{
    return unlikely(c->move != NULL) && c->move->pending.is_set;
}

/* What "stats conns" shows of it. */
static inline void
conn_set_state(struct conn *c, enum registry_state state)
{
    atomic_store_explicit(&c->entry.state, state, memory_order_relaxed);
}

/* Leaves every queue; destroyed at the end of the worker's pass, or when its message is back. */
void conn_close(struct conn *c, enum close_reason reason);
/* The client of a connection that waits for a token is gone. */
must_check bool conn_is_reset(const struct conn *c);
/* The client has sent what its worker is about to read, not what waits until the client reads: after a pause
 * of the whole process its silence was not the client's. */
must_check bool conn_has_unread(const struct conn *c);
/* What it was parked for is done: its message is back. */
void conn_resume(struct conn *c);
/* Worker is draining: serve what has arrived, then close. */
void conn_drain(struct conn *c);

/* Into its worker's list, and out of it. */
void conn_link(struct conn *c);
void conn_unlink(struct conn *c);
/* What is already there is reported, like all that comes from here on. False: no memory. */
must_check bool conn_watch(struct conn *c);

/* ---- for migrate.c: to another worker ------------------------------------------------- */

/* Between two requests, and nothing of it is in the worker but its place in the list. */
must_check bool conn_is_movable(const struct conn *c);
/* Makes it ready to go although input has come: between two requests, with what is unread. False:
 * not now, since a request or its reply is under way. */
must_check bool conn_pack(struct conn *c);
/* Leaves its worker. */
void conn_leave(struct conn *c);
/* Comes to its new worker. */
void conn_join(struct conn *c, struct worker *w);
