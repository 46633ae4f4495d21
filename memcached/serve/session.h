/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A client's protocol state, without its socket: bytes go in, replies come out. The caller
 * alternates session_peek (is there a request?) and session_run (do a bounded piece of it)
 * and decides in between whether, when and in which class it runs.
 *
 * Owner: the connection's worker thread. While a request is pending (peek said READY, or run
 * said AGAIN or LATE) its slices point into the input buffer, so the caller must neither
 * open nor park the buffer.
 */
#pragma once

#include "base/buf.h"
#include "base/chain.h"
#include "proto/ascii.h"
#include "proto/binary.h"
#include "serve/env.h"

struct session {
    uint32_t line_len; /* bytes of the pending request's line in the buffer */
    uint32_t scanned;  /* bytes of an unfinished line known to hold no LF */
    uint64_t swallow;  /* bytes of a rejected data block still to be dropped */
    struct item *item; /* a store's body being filled, or a value that is to be sent */
    uint32_t filled;   /* bytes of the body that have arrived, text: CR LF included */
    uint32_t watches;  /* after RAN_WATCH: what the client wants to hear of */
    union {
        struct serve_place place; /* of what is made in pieces */
        struct parked *parked;    /* has_parked */
    };
    uint8_t protocol; /* enum protocol: which one the client speaks */
    uint8_t error;    /* enum reply: the pending request is a bad line with it */
    bool closes;      /* ... and ends the connection */
    bool is_pending;  /* a request has been parsed and is not finished */
    bool is_body;     /* ... and is a store whose body is being filled */
    bool is_open;     /* a retrieval line goes on behind what was parsed of it */
    bool skips_line;  /* bytes up to the next LF are to be dropped */
    uint8_t binding;  /* enum serve_binding of the listener; the caller may set it once */
    bool is_authenticated;     /* asked when env->conf->auth is set */
    bool is_datagram;          /* cannot be watched from; set by net/ */
    bool may_control;          /* change how others are served; set by net/ */
    bool is_local;             /* a UNIX socket or loopback; set by net/ */
    bool is_long;              /* RAN_LONG has been said of the pending request, */
    bool is_behind;            /* and replies waited before it */
    bool has_parked;           /* a hook waits for another thread */
    bool follows;              /* a request of the same input has been answered */
    uint8_t declared;          /* class of all its requests, as the listener or the client
                            * said: 1 + number, known to net/; 0: none */
    uint8_t dump;              /* enum dump_kind: a dump is under way */
    struct auth_session *auth; /* NULL between authentications */
    struct debug_lock *holds;  /* what debugitem holds */
    struct req *req;           /* the request under way or just finished; else NULL */
};

enum session_next {
    SESSION_READY, /* a request, or the next part of one, can run */
    SESSION_MORE,  /* more input is needed */
    SESSION_WANT,  /* body bytes are needed: session_want says where they go */
    SESSION_CLOSE, /* hostile input: close */
    SESSION_NO_MEMORY,
};

enum session_ran {
    RAN_DONE,  /* the request is finished */
    RAN_AGAIN, /* a limit was reached; run again */
    RAN_LATE,  /* turned out to be large; run again, as bulk */
    RAN_PARKED, /* another thread works for it: run again when env->back.message has come back */
    RAN_LONG,      /* may take long; nothing is done yet: run again, alone in its turn */
    RAN_BODY,      /* the body is incomplete */
    RAN_QUIT,      /* the client asked to be closed */
    RAN_CLOSE,     /* the request was hostile: close behind the reply */
    RAN_NO_MEMORY, /* the reply is incomplete: close */
    RAN_WATCH,     /* the client becomes a watcher and has a place (watch_enter) */
};

struct session_limits {
    unsigned keys;     /* look up at most this many keys of a retrieval */
    size_t out_bytes;  /* start nothing when this much output is waiting */
    size_t late_bytes; /* a value larger than this stops with RAN_LATE; 0: never */
    bool is_bulk;      /* the client's requests are large of late */
};

/* What class_of wants to know, without depending on it. */
struct session_facts {
    bool is_control;
    bool is_write; /* a storage command or a delete */
    uint32_t keys;
    uint64_t value_bytes;
    bool is_incomplete; /* a line of keys that goes on */
};

void session_init(struct session *s);
/* Releases what a half-done request holds. */
void session_fini(struct session *s, const struct env *env);
/* Its client is gone while it is parked. The message comes back all the same. */
void session_leave_parked(struct session *s);
/* It waits for its client. Between two requests it needs no memory for one. */
void session_rest(struct session *s, const struct env *env);

must_check enum session_next session_peek(struct session *s, const struct env *env,
                                          struct buf *in);
struct session_facts session_facts(const struct session *s);
/* A retrieval of at most `keys` keys about whose values nothing is known yet. */
static inline bool
session_is_get(const struct session *s, uint32_t keys)
{
    return s->req->family == FAMILY_RETRIEVE && s->req->keys <= keys && !s->is_open &&
           !s->req->is_open && s->item == NULL && s->error == REPLY_NONE;
}
/* Nothing is under way, and the client speaks text. */
static inline bool
session_is_plain(const struct session *s)
{
    return s->protocol == PROTOCOL_ASCII && s->swallow == 0 && s->declared == 0 &&
           !(s->is_pending | s->is_open | s->skips_line);
}
/* The first keys of a plain get have been answered: the rest of its line is the next input. False: no
 * memory. */
must_check bool session_open_get(struct session *s, const struct env *env);
/* The key of the pending request, its first one, decoded into buf when it came as base64; empty: it has
 * none. */
struct slice session_key(const struct session *s, char buf[REQ_KEY_MAX]);
must_check enum session_ran session_run(struct session *s, const struct env *env,
                                        struct buf *in, struct chain *out,
                                        const struct session_limits *limits);
/* Instead of running a request that has just become pending: it is not executed, its body is
 * dropped, and the client hears that the server is busy, or, as_miss, what it would hear if
 * nothing were stored. DONE, or as session_run for a bad line. */
must_check enum session_ran session_refuse(struct session *s, const struct env *env,
                                           struct buf *in, struct chain *out,
                                           bool as_miss);

/* After session_refuse: does the same to the plain text gets of at most `keys` keys each that
 * follow in the buffer, much cheaper than one by one. Returns how many. */
unsigned session_refuse_gets(struct session *s, const struct env *env, struct buf *in,
                             struct chain *out, uint32_t keys, bool as_miss);

/* Gives up the text retrieval that is under way, or has just been finished: what is left of
 * its line will be dropped. The caller answers. */
void session_abandon(struct session *s, const struct env *env, struct buf *in);

/* Where the next body bytes go, after SESSION_WANT. */
size_t session_want(struct session *s, char **to);
void session_got(struct session *s, size_t n);

/* A request that is pending and has not run yet is input again, so that the buffer may be moved.
 * True: nothing but input is under way now. False: the request has begun, or was refused. */
must_check bool session_rewind(struct session *s);

/* How much of an unfinished request has come, in bytes; grows with it. 0: nothing is unfinished. */
uint64_t session_progress(const struct session *s, const struct buf *in);

/* True between requests: nothing is pending, held or half read. */
bool session_is_quiescent(const struct session *s, const struct buf *in);
