/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One client connection: outstanding requests in order, bytes not yet sent, reply parser.
 * It knows nothing of schedules, loops or how bytes are moved: the caller pushes requests,
 * sends what lconn_output shows, and pulls finished ones out of the bytes received. Its
 * thread only; no allocation after lconn_init.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/wire/codec.h"
#include "loadgen/wire/dgram.h"
#include "loadgen/wire/link.h"
#include "loadgen/wire/reply.h"
#include "loadgen/wire/request.h"
#include "loadgen/wire/followups.h"
#include "loadgen/wire/stamps.h"
#include "loadgen/wire/target.h"
#include "loadgen/work/workload.h"

enum lconn_state {
    LCONN_DOWN,
    LCONN_CONNECTING,
    LCONN_UP,
};

struct lconn {
    struct link link;
    enum lconn_state state;
    struct request_style style;
    const struct lconn_auth *auth;
    const struct target *target;
    unsigned server; /* index of target */
    unsigned index;  /* its own, among the connections of its set */
    nsec_t retry_at; /* DOWN: when to connect again; CONNECTING: when to give that up */
    nsec_t backoff;
    nsec_t full_since; /* DOWN: the listener's queue has been full; 0: it was not */

    /* Ring of requests: `count` from `head`; the last `fresh` are not issued yet, the
     * `issued` before them were by the last flush. */
    struct request_op *ops;
    uint64_t *keys; /* keys_max for each op */
    unsigned capacity, head, count, fresh, issued;
    unsigned keys_max;
    /* whose pages the keys are, held while needed; NULL: numbers */
    struct trace_buffer *trace_buffer;

    /* out[sent..len) is to be sent. */
    char *out;
    size_t out_cap, out_len, out_sent;
    uint64_t put;      /* bytes put into it since the start of the connection */
    nsec_t blocked_at; /* nothing could be sent since, 0: it could */
    size_t request_max;

    /* Of datagrams, each a request or one reply: they come in any order, or not at all. */
    bool is_framed;
    bool takes_hits;   /* what replies consist of can be (lconn_take_hits) */
    bool is_answering; /* the bytes being parsed are the reply to the oldest request */
    uint16_t next_id, ids_free; /* of datagrams: so many from the next on are free */
    struct dgram dgram;

    struct reply reply;         /* to the oldest request */
    struct followups followups; /* of answers: sent before anything else */

    struct stamps *stamps; /* of the kernel or the card; NULL: none */

    /* lset's. */
    bool is_watched, is_watched_for_send, is_in_more;
    /* The caller's. */
    nsec_t read_at; /* when what is parsed came: start of what follows from it; 0: nothing
                     * has come yet */
    bool in_room, is_dirty;
};

/* What a connection begins with, from codec->put_auth; constant. */
struct lconn_auth {
    char bytes[CODEC_AUTH_ROOM];
    size_t len;
};

struct lconn_conf {
    const struct codec *codec;
    const struct target *target;
    unsigned server;
    unsigned capacity; /* most outstanding requests */
    const struct workload *workload;
    /* of the workload's keys; NULL: they differ in length */
    const struct codec_stencil *get;
    const struct lconn_auth *auth; /* NULL: the connection begins with nothing */
    bool is_stamped;               /* has room for time stamps */
};

void lconn_init(struct lconn *c, const struct lconn_conf *conf);
void lconn_fini(struct lconn *c);

/* UP for the first time: pushes what the connection begins with, to be flushed before anything
 * else. Its reply is no outcome of lconn_parse when it is the right one. */
void lconn_greet(struct lconn *c);
/* Closes the link: outstanding requests are forgotten (take them with lconn_take_op
 * before). */
void lconn_down(struct lconn *c);

/* Whether another request of any size fits now, and how many may be on their way. */
static inline bool
lconn_has_room(const struct lconn *c, unsigned depth)
{
    return c->state == LCONN_UP && c->count < depth &&
           c->out_cap - c->out_len >= c->request_max;
}

/* Needs lconn_has_room, and no followup (lconn_push_followup) before. */
void lconn_push(struct lconn *c, const struct workload *w, const struct request *request);
/* Likewise; pushes what follows from an earlier answer. NULL when there is nothing. */
const struct request_op *lconn_push_followup(struct lconn *c, const struct workload *w);

/* A flush begins: forgets which requests the last one issued. */
void lconn_begin_flush(struct lconn *c);
/* What is to be sent next; 0 bytes when there is nothing. Valid until the next call. Of datagrams it is
 * one, with one request. */
size_t lconn_next_datagram(const struct lconn *c);
static inline size_t
lconn_output(const struct lconn *c, const char **bytes)
{
    *bytes = c->out + c->out_sent;
    return unlikely(c->is_framed) ? lconn_next_datagram(c) : c->out_len - c->out_sent;
}
/* `bytes` of it were given to the kernel: requests of which that was the last byte are issued.
 * Returns whether more is to be sent. */
bool lconn_sent(struct lconn *c, size_t bytes);
/* Nothing more is sent for now: the socket takes no more (since `blocked_at`), or 0. */
void lconn_end_flush(struct lconn *c, nsec_t blocked_at);

/* The i-th of the `issued` requests, until one is over. */
struct request_op *lconn_issued_op(struct lconn *c, unsigned i);
/* The one behind it. */
static inline struct request_op *
lconn_next_op(const struct lconn *c, struct request_op *op)
{
    return op + 1 == c->ops + c->capacity ? c->ops : op + 1;
}
/* Those that the flush issued were so at `now`: the caller of lset_flush says it, by this or while it
 * looks at each of them. */
void lconn_stamp(struct lconn *c, nsec_t now);
/* The i-th of the `fresh` ones: not all of it has gone. */
struct request_op *lconn_fresh_op(struct lconn *c, unsigned i);
/* The oldest request, NULL when there is none. */
const struct request_op *lconn_oldest(const struct lconn *c);
/* Datagrams: what came answers the request with that id, which becomes the oldest. False when
 * there is none on its way. */
must_check bool lconn_choose(struct lconn *c, uint16_t id);
/* Datagrams: removes a request issued before `limit`, with its first key; false when there is
 * none. */
must_check bool lconn_give_up(struct lconn *c, nsec_t limit, struct request_op *op,
                              uint64_t *key);
/* How long an answer is waited for before a request is sent again: `first`, then twice as
 * long each time, `most` at most. */
struct lconn_timeout {
    nsec_t first, most;
};
/* Datagrams: pushes a request of one key again that has waited so long, under the id that it
 * has: what answers it once answers it. Its `tries` count how often that was done. False when
 * there is none. Needs room for its bytes, as lconn_push does. */
must_check bool lconn_retransmit(struct lconn *c, const struct workload *w,
                                 const struct lconn_timeout *p, nsec_t now);
/* Removes the oldest request; false when there is none. */
bool lconn_take_op(struct lconn *c, struct request_op *op);

/* Takes the next finished request out of received bytes. Where the workload defers, the caller
 * empties c->followups.missed behind it. */
void lconn_parse(struct lconn *c, const struct workload *w, const char *buf, size_t len,
                 struct reply_done *done);
/* The same of those at buf + *taken that count alike, at most `most`: plain gets of the same times that
 * hit, with values as long. Returns how many, each of which *done is; moves *taken behind them. 0:
 * anything else is there. */
unsigned lconn_take_hits(struct lconn *c, const struct workload *w, const char *buf,
                         size_t len, size_t *taken, unsigned most,
                         struct reply_done *done);
