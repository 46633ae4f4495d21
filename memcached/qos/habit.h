/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a connection has been asking for lately, so that its next request can be put in its
 * place before it is read. Reading costs as much as serving a small request: fifty bulk
 * connections that become ready together must not all be read ahead of a small one.
 *
 * Pure; one for each connection, its worker's thread only. Zero-initialised.
 */
#pragma once

#include "qos/class.h"

#define HABIT_GREEDY 8 /* requests at once that make a connection greedy */

struct habit {
    uint16_t
        recent; /* a bit for each of the last 16 requests: it was of a deferred class */
    uint16_t burst; /* requests served since it last waited for the client */
    bool is_greedy; /* its last burst was long */
    uint8_t class;  /* enum req_class of the request at the head, or the last one */
};

/* A request has been served. */
static inline void
habit_note(struct habit *h, enum req_class class)
{
    h->recent = (uint16_t)(h->recent << 1 | !class_is_inline(class));
}

/* A turn that served `requests` is over; `waits`: for the client, all that came is served. */
static inline void
habit_end_turn(struct habit *h, unsigned requests, bool waits)
{
    unsigned burst = h->burst + requests;
    h->is_greedy = burst >= HABIT_GREEDY;
    h->burst = waits ? 0 : (uint16_t)(h->is_greedy ? HABIT_GREEDY : burst);
}

/* The queue in which the connection waits to be read; CLASS_NONE: it is read at once. */
static inline enum req_class
habit_lane(const struct habit *h)
{
    if (h->recent == UINT16_MAX) {
        return h->class > CLASS_SMALL ? (enum req_class)h->class : CLASS_SMALL;
    }
    return h->is_greedy ? CLASS_SMALL : CLASS_NONE;
}
