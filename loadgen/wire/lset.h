/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A thread's connections and the means to wait for them: an epoll set with a timer finer
 * than epoll's milliseconds. Its thread only.
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
    bool with_nodelay;
    nsec_t timeout;
};

struct lset {
    struct lset_conf conf;
    int epoll_fd, timer_fd;
    nsec_t armed_at; /* what the timer is set to, 0: nothing */
    struct lconn *conns;
    unsigned count;
    struct epoll_event events[LSET_EVENTS_MAX];
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
/* The connection of event i, NULL for the timer. */
struct lconn *lset_event(struct lset *s, unsigned i, uint32_t *events);
/* Makes lset_wait return at `when`; 0 for never. */
void lset_wake_at(struct lset *s, nsec_t when);

enum lset_input {
    LSET_DATA,
    LSET_NOTHING,
    LSET_LOST, /* end of stream or error */
};

/* One recv into s->input. */
must_check enum lset_input lset_receive(struct lset *s, struct lconn *c, size_t *len);

/* lconn_flush, with the wish to hear of writability kept up to date. */
must_check enum lconn_io lset_flush(struct lset *s, struct lconn *c, nsec_t now,
                                    size_t *sent);

/* The connection is lost: closes it and sets the time of the next attempt. */
void lset_lose(struct lset *s, struct lconn *c, nsec_t now);
/* Starts or finishes connecting again. False when the attempt failed; the next one is set
 * then. One that has only started is to be given up (lset_lose) at c->retry_at. */
must_check bool lset_reconnect(struct lset *s, struct lconn *c, nsec_t now);
