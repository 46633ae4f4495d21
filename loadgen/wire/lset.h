/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A thread's connections and how their bytes are moved: here by an epoll set with a timer
 * finer than epoll's milliseconds, one receive an event and one send a flush. Its thread only.
 *
 * What stands below is all that loops know of it: they wait, ask what happened to whom, take
 * the bytes that came, push requests (lconn.h) and flush. Another engine replaces lset.c and
 * keeps to this: bytes from lset_receive are its own memory, valid until its next call;
 * lset_flush may have only begun to send, and stamps (lconn_sent) what the kernel was given;
 * whatever has more to give than an event says is an event of the next lset_wait. It finds
 * what to send through lconn_output and knows nothing of requests and replies.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "loadgen/wire/lconn.h"

#define LSET_EVENTS_MAX 256
#define LSET_INPUT_BYTES 131072
/* Pauses before connecting again: doubled from the first to the last. */
#define LSET_BACKOFF_FIRST (10 * NSEC_PER_MSEC)
#define LSET_BACKOFF_LAST NSEC_PER_SEC

struct lset_conf {
    const struct codec *codec;
    const struct target *targets;
    unsigned targets_len;
    unsigned per_target; /* connections to each */
    unsigned capacity;   /* requests on their way, each connection */
    const struct workload *workload;
    const struct lconn_auth *auth; /* NULL: none */
    struct ltls *tls;              /* of targets that speak TLS */
    const struct shard *shard;     /* which target a key belongs to; NULL: to each */
    bool with_nodelay;
    nsec_t timeout;
};

/* What lset_wait has found; connections by number. */
struct lset {
    struct lset_conf conf;
    int epoll_fd, timer_fd;
    nsec_t armed_at; /* what the timer is set to, 0: nothing */
    struct lconn *conns;
    unsigned count;
    struct epoll_event events[LSET_EVENTS_MAX];
    unsigned events_len;
    /* Connections with input that no event tells of: since the last wait, and before it. */
    struct lconn **more, **more_before;
    unsigned more_len, more_before_len;
    char input[LSET_INPUT_BYTES]; /* of the connection being read */
};

/* Connects all and waits until they are. NULL, or a sentence (err) saying what failed. */
must_check const char *lset_open(struct lset *s, const struct lset_conf *conf, char *err,
                                 size_t err_len);
/* Makes sure that every connection is up and has nothing on its way, by making it anew where
 * it is not so (all of them when asked to). As lset_open otherwise. */
must_check const char *lset_renew(struct lset *s, bool all, char *err, size_t err_len);
/* Also after a failed lset_open. */
void lset_close(struct lset *s);

/* Waits for events until the timer set by lset_wake_at, at most `timeout_ms`. Returns how
 * many lset_event can take. */
unsigned lset_wait(struct lset *s, int timeout_ms);
/* What can be done with a connection; while it connects, either means lset_reconnect. */
#define LSET_CAN_RECEIVE 1U
#define LSET_CAN_SEND 2U
/* The connection of event i, NULL for the timer. */
struct lconn *lset_event(struct lset *s, unsigned i, unsigned *can);
/* Makes lset_wait return at `when`; 0 for never. */
void lset_wake_at(struct lset *s, nsec_t when);

enum lset_input {
    LSET_DATA,
    LSET_NOTHING,
    LSET_LOST, /* end of stream or error */
};

struct lset_bytes {
    const char *p;
    size_t len;
};

/* What has come in, once an event. */
must_check enum lset_input lset_receive(struct lset *s, struct lconn *c,
                                        struct lset_bytes *in);

/* Sends what the connection has, as far as it goes now: *sent bytes, and requests that
 * lconn_issued_op tells; the rest goes with a flush after LSET_CAN_SEND. False when the
 * connection is lost. */
must_check bool lset_flush(struct lset *s, struct lconn *c, nsec_t now, size_t *sent);

/* The connection is lost: closes it and sets the time of the next attempt. */
void lset_lose(struct lset *s, struct lconn *c, nsec_t now);
/* Starts or finishes connecting again. False when the attempt failed; the next one is set
 * then. One that has only started is to be given up (lset_lose) at c->retry_at. */
must_check bool lset_reconnect(struct lset *s, struct lconn *c, nsec_t now);
