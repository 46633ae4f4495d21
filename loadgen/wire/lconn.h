/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One client connection: requests on their way in order, bytes not yet sent, reply parser.
 * It knows nothing of schedules, loops or how bytes are moved: the caller pushes requests,
 * sends what lconn_output shows, and pulls finished ones out of the bytes received. Its
 * thread only; no allocation after lconn_init.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "loadgen/wire/codec.h"
#include "loadgen/wire/dgram.h"
#include "loadgen/wire/link.h"
#include "loadgen/wire/stamps.h"
#include "loadgen/wire/target.h"
#include "loadgen/work/workload.h"

#define LCONN_PAST 64 /* requests that are remembered when they are over */

enum lconn_state {
    LCONN_DOWN,
    LCONN_CONNECTING,
    LCONN_UP,
};

/* What the caller has to send when a get is answered. */
enum lconn_then {
    THEN_NOTHING,
    THEN_CAS, /* a cas of each value */
    THEN_SET, /* a set of each key */
};

/* A request on its way. */
struct lconn_op {
    nsec_t intended;
    nsec_t issued;  /* 0 until all of it was given to the kernel */
    uint64_t begin; /* its first byte, counted from the start of the connection */
    enum codec_verb verb;
    unsigned keys;
    enum lconn_then then;
    bool is_verified; /* values are compared with what they should be */
    uint32_t tag;     /* the caller's */
    uint16_t id;      /* in datagrams */
    bool is_fill;     /* stores what was missed */
    uint8_t
        tries; /* so often was its key asked for before, and somebody else's to store */
};

/* A request of one key that follows from an answer. */
struct lconn_todo {
    nsec_t intended; /* when the answer came */
    uint64_t key;
    uint64_t cas;
    enum codec_verb verb; /* SET, CAS or GET */
    bool is_fill;
    uint8_t tries;
};

/* What is to be done about a key, though not at once. */
enum lconn_need {
    NEED_SET, /* it was missed */
    NEED_CAS, /* the same, and the lease on it was won */
    NEED_GET, /* it was missed, and somebody else has the lease */
};

struct lconn_missed {
    uint64_t key, cas;
    enum lconn_need need;
    uint8_t tries; /* as op has it */
};

struct lconn_request {
    enum codec_verb verb;
    const uint64_t *keys;
    unsigned count; /* of keys: 1 but for gets */
    nsec_t intended;
    uint64_t cas; /* verb CAS only */
    enum lconn_then then;
    bool is_verified;
    uint32_t tag;
    bool is_fill;
    uint8_t tries;
};

/* Of requests that are on their way no more, as far as it is remembered. */
enum lconn_past {
    LCONN_UNKNOWN,
    LCONN_WAS_GIVEN_UP, /* its reply is late */
    LCONN_WAS_REFUSED,  /* the rest of what was no reply */
};

struct lconn {
    struct link link;
    enum lconn_state state;
    const struct codec *codec;
    const struct codec_stencil *get; /* NULL: gets differ in more than the key */
    const struct lconn_auth *auth;
    const struct target *target;
    unsigned server; /* index of target */
    nsec_t retry_at; /* DOWN: when to connect again; CONNECTING: when to give that up */
    nsec_t backoff;

    /* Ring of requests: `count` from `head`; the last `fresh` are not issued yet, the
     * `issued` before them were by the last flush. */
    struct lconn_op *ops;
    uint64_t *keys; /* keys_max for each op */
    unsigned capacity, head, count, fresh, issued;
    unsigned keys_max;
    struct book *book; /* whose pages the keys are, held while needed; NULL: numbers */

    /* out[sent..len) is to be sent. */
    char *out;
    size_t out_cap, out_len, out_sent;
    uint64_t put;      /* bytes put into it since the start of the connection */
    nsec_t blocked_at; /* nothing could be sent since, 0: it could */
    size_t request_max;

    /* Of datagrams, each a request or one reply: they come in any order, or not at all. */
    bool is_framed;
    bool is_answering; /* the bytes being parsed are the reply to the oldest request */
    uint16_t next_id;
    struct dgram dgram;
    struct {
        uint16_t id;
        enum lconn_past past;
    } past[LCONN_PAST]; /* a ring */
    unsigned past_count;

    /* The reply being read. */
    struct codec_parser parser;
    unsigned next_key; /* first key of the head get that may still be answered */
    unsigned hits;
    uint64_t value_at;    /* bytes of the value seen */
    uint64_t value_bytes; /* of all values; as long as there are hits */
    bool is_wrong;        /* a value was not the key's */

    /* What follows from answers, a ring: sent before anything else, so that it never holds
     * more than the keys of all gets on their way. NULL when nothing ever follows. */
    struct lconn_todo *todo;
    unsigned todo_cap, todo_head, todo_count;

    /* Of workloads that defer: what the last lconn_parse left to the caller. */
    struct lconn_missed *missed; /* room for keys_max */
    unsigned missed_count;
    unsigned stale; /* values that were out of date */

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
    unsigned capacity; /* most requests on their way */
    const struct workload *workload;
    const struct codec_stencil
        *get; /* of the workload's keys; NULL: they differ in length */
    const struct lconn_auth *auth; /* NULL: the connection begins with nothing */
    bool is_stamped;               /* has room for time stamps */
};

/* False when memory is short. */
must_check bool lconn_init(struct lconn *c, const struct lconn_conf *conf);
void lconn_fini(struct lconn *c);

/* UP for the first time: pushes what the connection begins with, to be flushed before anything
 * else. Its reply is no outcome of lconn_parse when it is the right one. */
void lconn_greet(struct lconn *c);
/* Closes the link: requests on their way are forgotten (take them with lconn_take_op
 * before). */
void lconn_down(struct lconn *c);

/* Whether another request of any size fits now, and how many may be on their way. */
static inline bool
lconn_has_room(const struct lconn *c, unsigned depth)
{
    return c->state == LCONN_UP && c->count < depth &&
           c->out_cap - c->out_len >= c->request_max;
}

/* Needs lconn_has_room, and nothing to do (lconn_push_todo) before. */
void lconn_push(struct lconn *c, const struct workload *w,
                const struct lconn_request *request);
/* Likewise; pushes what follows from an earlier answer. NULL when there is nothing. */
const struct lconn_op *lconn_push_todo(struct lconn *c, const struct workload *w);

/* Whether lconn_follow may be called: what follows from answers has room beside it. */
static inline bool
lconn_can_follow(const struct lconn *c)
{
    return c->todo_count < c->capacity * c->keys_max;
}
/* Something of a workload that defers is due: it is pushed before anything else. */
void lconn_follow(struct lconn *c, const struct workload *w,
                  const struct lconn_todo *todo);

/* A flush begins: forgets which requests the last one issued. */
void lconn_begin_flush(struct lconn *c);
/* What is to be sent next; 0 bytes when there is nothing. Valid until the next call. */
size_t lconn_output(const struct lconn *c, const char **bytes);
/* `bytes` of it were given to the kernel: requests of which that was the last byte are
 * stamped with `now`. */
void lconn_sent(struct lconn *c, size_t bytes, nsec_t now);
/* Nothing more is sent for now: the socket takes no more (since `blocked_at`), or 0. */
void lconn_end_flush(struct lconn *c, nsec_t blocked_at);

/* The i-th of the `issued` requests. */
struct lconn_op *lconn_issued_op(struct lconn *c, unsigned i);
/* The oldest request, NULL when there is none. */
const struct lconn_op *lconn_oldest(const struct lconn *c);
/* Datagrams: what came answers the request with that id, which becomes the oldest. False when
 * there is none on its way. */
must_check bool lconn_choose(struct lconn *c, uint16_t id);
/* Datagrams: removes a request issued before `limit`, with its first key; false when there is
 * none. */
must_check bool lconn_give_up(struct lconn *c, nsec_t limit, struct lconn_op *op,
                              uint64_t *key);
/* Datagrams: what became of that request, not long ago. */
enum lconn_past lconn_past(const struct lconn *c, uint16_t id);
/* Datagrams: what came for that request is no reply; more of it may come. */
void lconn_refuse(struct lconn *c, uint16_t id);
/* Removes the oldest request; false when there is none. */
bool lconn_take_op(struct lconn *c, struct lconn_op *op);

enum lconn_outcome {
    LCONN_MORE,       /* all bytes used */
    LCONN_GOOD,       /* one of the answers that belong to the request */
    LCONN_BAD,        /* answered with an error; `kind` says which */
    LCONN_UNEXPECTED, /* a reply that this request cannot have; `kind` says which */
    LCONN_WRONG,      /* a value is not what the key has */
    LCONN_GARBLED, /* a datagram with something else than a reply: the request is over */
    LCONN_BROKEN,  /* not the protocol, or a reply to nothing: close */
};

struct lconn_done {
    enum lconn_outcome outcome;
    struct lconn_op op; /* not for MORE and BROKEN */
    enum client_kind kind;
    bool
        has_effect; /* GOOD: of a verb other than get; else the key was not (or was) there */
    unsigned hits;
    uint64_t value_bytes; /* GOOD: of what was hit */
    bool is_last;         /* the server closes the connection behind it */
    size_t taken;         /* bytes of the input used */
};

/* Takes the next finished request out of received bytes. Where the workload defers, the caller
 * empties c->missed behind it: of each entry it has the key (book_release). */
void lconn_parse(struct lconn *c, const struct workload *w, const char *buf, size_t len,
                 struct lconn_done *done);
