/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A request: what is asked for, in the words of the workload, and its bytes in those of the
 * protocol. Pure: no connection, no time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

struct request {
    enum codec_verb verb;
    const uint64_t *keys;
    unsigned count; /* of keys: 1 but for gets */
    nsec_t intended;
    uint64_t cas; /* verb CAS only */
    enum request_then then;
    bool is_verified; /* values are compared with what they should be */
    uint32_t tag;     /* the caller's */
    bool is_fill;     /* stores what was missed */
    uint8_t
        tries; /* times that its key was asked for before, and another client's to store; or it
                * was sent before */
};

/* A request on its way. */
struct request_op {
    nsec_t intended;
    nsec_t issued;  /* 0 until all of it was given to the kernel */
    uint64_t begin; /* its first byte, counted from the start of the connection */
    enum codec_verb verb;
    unsigned keys;
    enum request_then then;
    bool is_verified;
    uint32_t tag;
    uint16_t id; /* in datagrams */
    bool is_fill;
    uint8_t tries;
};

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
 * has it. */
char *request_put(const struct request *r, const struct workload *w,
                  const struct request_style *style, uint64_t salt, char *p);
