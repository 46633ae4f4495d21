/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Whole requests of the kinds that most are of, served from where they were read to where they are
 * sent from, without a session: text gets, and sets whose value came with them.
 *
 *     "set a 0 0 1\r\n1\r\nget a\r\n"  ->  "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n"
 *
 * Anything else ends it: that is the session's, together with what is behind it.
 *
 * The worker's thread.
 */
#pragma once

#include "serve/gets.h"

struct plain_limits {
    struct gets_limits
        gets; /* its requests: gets and sets together, what was served is taken off */
    bool (*may_set)(const void *ctx); /* before each: else it is the session's, too */
    const void *ctx;
};

struct plain_count {
    unsigned requests;
    size_t bytes; /* of replies, and of values stored */
};

struct plain_served {
    struct plain_count gets, sets;
    size_t consumed, made; /* bytes of input and output */
    bool ends_with_set;
    bool
        is_open; /* the last one has its first replies: the rest of its keys is the session's */
    bool is_late; /* the turn is over */
};

/* Serves those at the front of in[0..len). No watcher wants to hear of gets. ASCII_CUT_SLACK bytes
 * behind the input are this function's. */
struct plain_served plain_serve(const struct env *env, char *in, size_t len, char *to,
                                size_t room, const struct plain_limits *limits);
