/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A thread's connections: waiting for them, connecting, flushing. Its thread only.
 *
 * What stands below is all that loops know of how bytes are moved: they wait, ask what
 * happened to which connection, take the bytes that came, push requests (lconn.h) and
 * flush. What waits and receives is an engine (engine.h). It knows nothing of requests
 * and replies.
 */
#pragma once

#include <stdatomic.h>

#include "base/clock.h"
#include "loadgen/wire/engine.h"
#include "loadgen/wire/lconn.h"

/* Pauses before connecting again: doubled from the first to the last. */
#define LSET_BACKOFF_FIRST (10 * NSEC_PER_MSEC)
#define LSET_BACKOFF_LAST NSEC_PER_SEC

struct lset_conf {
    const struct codec *codec;
    const struct target *targets;
    unsigned targets_len;
    unsigned per_target; /* connections to each */
    unsigned capacity;   /* outstanding requests, each connection */
    const struct workload *workload;
    const struct lconn_auth *auth; /* NULL: none */
    struct ltls *tls;              /* of targets that speak TLS */
    const struct shard *shard;     /* which target a key belongs to; NULL: to each */
    const struct engine *engine;
    enum stamps_by stamps;
    bool with_nodelay;
    nsec_t timeout;
    unsigned src_port; /* local, of the first connection; the others follow; 0: any */
    const atomic_bool *stop; /* ends connecting and waiting for it; NULL: nothing does */
};

struct waiter; /* the engine's */

struct lset {
    struct lset_conf conf;
    struct waiter *waiter;
    struct lconn *conns;
    unsigned count, room;     /* of room connections, count exist */
    struct codec_stencil get; /* when all keys are of one length */
    uint64_t late, duplicate; /* datagrams that answered nothing any more, so far */
};

/* Connects all and waits until they are. NULL, or a sentence (err) saying what failed, an empty
 * one when it was stopped. */
must_check const char *lset_open(struct lset *s, const struct lset_conf *conf, char *err,
                                 size_t err_len);
/* Makes sure that every connection is up and has nothing on its way, by making it anew where
 * it is not so (all of them when asked to). As lset_open otherwise. */
must_check const char *lset_renew(struct lset *s, bool all, char *err, size_t err_len);
/* Also after a failed lset_open. */
void lset_close(struct lset *s);

/* Waits for events until the timer set by lset_wake_at, at most `timeout_ms`. Returns how
 * many lset_event can take. */
static inline unsigned
lset_wait(struct lset *s, int timeout_ms)
{
    return s->conf.engine->wait(s, timeout_ms);
}

/* What can be done with a connection; while it connects, either means lset_reconnect. */
#define LSET_CAN_RECEIVE 1U
#define LSET_CAN_SEND 2U
/* The connection of event i, NULL for the timer. */
static inline struct lconn *
lset_event(struct lset *s, unsigned i, unsigned *can)
{
    return s->conf.engine->event(s, i, can);
}

/* Makes lset_wait return at `when`; 0 for never. */
static inline void
lset_wake_at(struct lset *s, nsec_t when)
{
    s->conf.engine->wake_at(s, when);
}

enum lset_input {
    LSET_DATA,
    LSET_NOTHING,
    LSET_STRAY, /* a datagram that is no answer, or not all of one yet: more may stand behind
                 * it */
    LSET_LOST, /* end of stream or error */
};

/* The clock of all that is measured. */
static inline nsec_t
lset_now(const struct lset *s)
{
    return s->conf.engine->now();
}

struct lset_bytes {
    const char *p;
    size_t len;
};

/* What has come in, once an event; valid until the next lset_receive or lset_wait. Of
 * datagrams it is one, and there is no harm in looking for the next one at once. */
must_check enum lset_input lset_receive(struct lset *s, struct lconn *c,
                                        struct lset_bytes *in);

/* Sends what the connection has, as far as it goes now: *sent bytes, and requests that
 * lconn_issued_op tells, for the caller to stamp; the rest goes with a flush after LSET_CAN_SEND. False when the
 * connection is lost. */
must_check bool lset_flush(struct lset *s, struct lconn *c, nsec_t now, size_t *sent);

/* Closes the connection; its requests are forgotten. */
void lset_down(struct lset *s, struct lconn *c);
/* The connection is lost: closes it and sets the time of the next attempt. */
void lset_lose(struct lset *s, struct lconn *c, nsec_t now);
/* Starts or finishes connecting again. LINK_LOST: the attempt failed, and the next one is set;
 * LINK_AGAIN: the listener's queue is full, and it goes on at c->retry_at. One that has only
 * started is to be given up (lset_lose) then. */
must_check enum link_io lset_reconnect(struct lset *s, struct lconn *c, nsec_t now);
