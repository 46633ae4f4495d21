/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A request: what is asked for, in the words of the workload, and its bytes in those of the
 * protocol. Pure: no connection, no time.
 */
#pragma once

#include "base/clock.h"
#include "loadgen/wire/codec.h"
#include "loadgen/work/mix.h"
#include "loadgen/work/trace.h"
#include "loadgen/work/workload.h"

/* What the caller has to send when a get is answered. */
enum request_then {
    THEN_NOTHING,
    THEN_CAS, /* a cas of each value */
    THEN_SET, /* a set of each key */
};

/* How a verb of a mix or a trace begins on the wire, and what follows. */
struct request_words {
    enum codec_verb verb;
    enum request_then then;
};
extern const struct request_words request_of_mix[MIX_VERBS];
extern const struct request_words request_of_trace[TRACE_VERBS_END];
/* The CODEC_BITs of all that it takes. */
unsigned request_needs(struct request_words words);

/* What is known of a request on its way. Where it is made, all but what its connection fills in. */
struct request_op {
    nsec_t intended;
    nsec_t issued; /* connection: 0 until all of it was given to the kernel */
    /* connection: its first byte, counted from the start of the connection */
    uint64_t begin;
    enum codec_verb verb;
    enum request_then then;
    unsigned keys;    /* 1 but for gets */
    uint32_t tag;     /* the caller's */
    uint16_t id;      /* connection: in datagrams */
    bool is_verified; /* values are compared with what they should be */
    bool is_fill;     /* stores what was missed */
    /* times that its key was asked for before, and another client's to store; or it
     * was sent before */
    uint8_t tries;
    /* connection: those of its first key, when it was written from a stencil */
    struct num_padded digits;
};

struct request {
    struct request_op op;
    const uint64_t *keys;
    uint64_t cas; /* verb CAS only */
};

/* Replies to such requests that hit differ in the key and the value alone. */
static inline bool
request_is_plain_get(const struct request_op *op)
{
    return op->verb == CODEC_GET && op->then == THEN_NOTHING && op->keys == 1 &&
           !op->is_verified;
}

/* How a connection writes its requests; constant. */
struct request_style {
    const struct codec *codec;
    const struct codec_stencil *get; /* NULL: gets differ in more than the key */
};

/* The most bytes that a request of the workload takes; and a key with its value, in a request or
 * a reply. */
size_t request_len_max(const struct workload *w);
size_t request_value_max(const struct workload *w);
/* Writes it to p, where there is room for so many; returns the end. `salt` as workload_set_len
 * has it; *digits is filled in as struct request_op has it. */
char *request_put(const struct request *r, const struct workload *w,
                  const struct request_style *style, uint64_t salt,
                  struct num_padded *digits, char *p);
