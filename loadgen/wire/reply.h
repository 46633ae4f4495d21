/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The reply to the oldest request of a connection, as far as it has come: which of its keys it
 * has answered, whether its values are right, and what follows from it. Bytes in, an outcome
 * out; no sockets, no allocation. Its connection's thread.
 */
#pragma once

#include "loadgen/wire/codec.h"
#include "loadgen/wire/request.h"
#include "loadgen/wire/followups.h"

struct reply {
    struct codec_parser parser;
    struct client_hit_line last; /* of a whole reply */
    unsigned next_key;           /* first key of a get that may still be answered */
    unsigned hits;
    uint64_t value_at;    /* bytes of the value seen */
    uint64_t value_bytes; /* of all values; as long as there are hits */
    bool is_counted;      /* the value's length was not said: by its bytes */
    bool is_wrong;        /* a value was not the key's */
};

/* What it is a reply to, and what came. */
struct reply_to {
    const struct codec *codec;
    const struct workload *w;
    const struct request_op *op;
    const uint64_t *keys;        /* the request's */
    struct followups *followups; /* gets what follows */
    nsec_t read_at;              /* when it came: start of what follows */
};

enum reply_outcome {
    REPLY_MORE,       /* all bytes used */
    REPLY_GOOD,       /* one of the answers that belong to the request */
    REPLY_BAD,        /* answered with an error; `kind` says which */
    REPLY_UNEXPECTED, /* a reply that this request cannot have; `kind` says which */
    REPLY_WRONG,      /* a value is not what the key has */
    REPLY_GARBLED, /* a datagram with something else than a reply: the request is over */
    REPLY_BROKEN,  /* not the protocol, or a reply to nothing: close */
};

struct reply_done {
    enum reply_outcome outcome;
    struct request_op op; /* not for MORE and BROKEN */
    enum client_kind kind;
    /* GOOD: of a verb other than get; else the key was not (or was) there */
    bool has_effect;
    unsigned hits;
    uint64_t value_bytes; /* GOOD: of what was hit */
    bool is_last;         /* the server closes the connection behind it */
    size_t taken;         /* bytes of the input used */
};

/* The next one begins anew. */
static inline void
reply_forget(struct reply *r)
{
    r->next_key = r->hits = 0;
    r->value_at = 0;
    r->is_wrong = false;
}
/* The same, also in the middle of one. */
static inline void
reply_reset(struct reply *r)
{
    reply_forget(r);
    codec_parser_init(&r->parser);
}

/* Goes on with it, in these bytes. Behind any outcome but MORE and BROKEN the request is over,
 * and the reply to be forgotten. */
void reply_read(struct reply *r, const struct reply_to *to, const char *buf, size_t len,
                struct reply_done *done);

/* What came, for a person to read: the line that buf[0..len) begins with when it is text, else these
 * words. */
#define REPLY_QUOTE 160 /* bytes that are enough */
void reply_quote(char *dst, size_t size, const char *buf, size_t len,
                 const char *otherwise);

/* Whether it has not begun. */
static inline bool
reply_is_new(const struct reply *r)
{
    return r->next_key == 0 && client_parser_is_idle(&r->parser.text);
}
/* Of one that is new, to a get of one key whose value nothing compares: its length when it is a hit, of
 * the key that value has, which is for the caller to look at; else 0, and reply_read has to say what it
 * is. */
static inline size_t
reply_find_hit(struct reply *r, const char *buf, size_t len, struct client_reply *value)
{
    size_t n = client_parse_hit(buf, len, &r->last, value);
    return n > 0 && value->kind == CLIENT_END ? n : 0;
}
