/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What one source of datagrams has under way at a UDP socket: the datagram at hand with its
 * session, the reply that is being sent, and copies of the datagrams that came while it waited.
 *
 * Each socket has one flow at its front, which takes one datagram after the other right from
 * the batch that was read, without a copy. What a source may have waiting is bounded; more is
 * lost, as when the socket's buffer is full.
 *
 * Set-aside: in one queue for all sources those behind a request that waits, for its turn or a
 * token, wait with it (head-of-line blocking: Karol, Hluchyj and Morgan 1987); a queue for each
 * source ends that. So the flow of such a request leaves the front (flow_settle), queues for itself
 * and keeps what follows from its source in order, and the socket goes on with another flow.
 *
 * The worker's thread.
 */
#pragma once

#include <sys/socket.h>

#include "core/pump.h"
#include "net/outbox.h"
#include "sock/udp_frame.h"
#include "sock/guard.h"

#define FLOW_WAITING_MAX 256            /* datagrams of a source that wait, */
#define FLOW_WAITING_BYTES (256U << 10) /* and their bytes */
/* Of its reply, whatever other flows have collected; together they may have UDP_FRAME_REPLY_MAX. */
#define FLOW_SHARE_BYTES (64U << 10)

/* A datagram as it was received. */
struct flow_datagram {
    const char *bytes;
    size_t len;
    const struct sockaddr_storage *from;
    socklen_t from_len;
    nsec_t
        received_at; /* since when it has waited, at most; 0: not measured. With an SLO */
};

struct flow_waiting;

struct flow {
    struct pump pump; /* first: the worker's queues hold it by this */
    struct outbox *outbox;
    struct flow *next, *prev; /* the socket's list of those that are set aside */
    enum req_class declared;  /* of the socket, or CLASS_NONE */
    const struct sockaddr_storage *from; /* the source: in the batch, or `source` */
    socklen_t from_len;
    struct sockaddr_storage source;
    struct flow_waiting *first, *last; /* what came while it waited */
    unsigned waiting;
    size_t waiting_bytes;
    nsec_t resumed_at; /* a wait for tokens ended: what came before is not late by that */
    /* The datagram at hand. */
    bool is_open;
    bool is_guarded;
    uint8_t ip[GUARD_IP_BYTES]; /* where it came from, when guarded */
    nsec_t received_at;
    const char *p; /* what the session has not taken yet */
    size_t left;
    void *own;       /* what holds it, when it is a copy; NULL: it is in the batch */
    uint64_t credit; /* bytes of reply that it has paid for */
    struct udp_frame frame;
    bool is_replying; /* pump.out is the message being sent */
    size_t counted;   /* of it, in outbox->collected */
};

/* How a turn, or a step of it, ended. */
enum flow_step {
    FLOW_ON,     /* go on */
    FLOW_WAIT,   /* for an event */
    FLOW_DEFER,  /* queue for a deferred turn */
    FLOW_QUEUED, /* waits for a token, queued already */
};

/* NULL: no memory. */
must_check struct flow *flow_create(struct outbox *outbox, const struct work_type *type,
                                    enum req_class declared);
/* Leaves the queues, and drops all that is under way. */
void flow_destroy(struct flow *f);

/* Something is at hand or being sent. */
static inline bool
flow_is_busy(const struct flow *f)
{
    return f->is_open || f->is_replying;
}

/* Begins with a datagram, unless it is none that is served. Nothing may be under way. */
void flow_open(struct flow *f, const struct flow_datagram *d);
/* Makes the flow independent of the batch. False: no memory. */
must_check bool flow_settle(struct flow *f);
/* Is it this source that the datagram comes from? */
must_check bool flow_is_from(const struct flow *f, const struct flow_datagram *d);
/* Keeps a copy for later; false: the source has too much waiting, and it is lost. */
must_check bool flow_keep(struct flow *f, const struct flow_datagram *d);
/* Begins with the next one of those kept. False: there is none. */
must_check bool flow_open_kept(struct flow *f);
/* A step with what is under way; there must be something. */
must_check enum flow_step flow_step(struct flow *f, struct turn *turn);
/* A deferred turn has served something, and its time is up. */
must_check bool flow_is_turn_over(const struct flow *f, const struct turn *turn);
