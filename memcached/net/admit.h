/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What connections and UDP sockets have in common when a request has become pending in their
 * session: how the limits see it, and what becomes of one that is refused. The worker's thread.
 */
#pragma once

#include "net/worker.h"
#include "serve/session.h"

/* The pending request, to be asked for: peer is struct peer's key, since when it has waited
 * (0: not known). */
static inline struct limiter_request
admit_request(const struct session *s, enum req_class class, uint64_t peer, nsec_t since)
{
    bool has_keys = s->req.family == FAMILY_RETRIEVE;
    return (struct limiter_request){
        .class = class, .peer = peer, .since = since, .keys = has_keys ? s->req.keys : 1};
}

/* Who has a session. */
struct admit_owner {
    const void *who; /* as latency_begin has it; NULL: what is pending is not followed */
    int fd;
    struct session *session;
    struct buf *in;
    struct chain *out;
};

/* Answers the pending request without running it, as the limiter's action has it; the result is
 * that of session_refuse. */
must_check enum session_ran admit_refuse(struct worker *w,
                                         const struct admit_owner *owner,
                                         struct turn *turn, enum req_class class);
