/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Datagrams on their way out of one UDP socket: replies are cut into them, and many leave in one
 * system call, whatever their destinations. The worker's thread.
 */
#pragma once

#include <sys/socket.h>

#include "base/chain.h"
#include "base/clock.h"
#include "qos/class.h"
#include "sock/udp_frame.h"

#define OUTBOX_REPLIES 32 /* datagrams written at once */

struct worker;

struct outbox {
    struct worker *worker;
    int fd;
    bool is_blocked; /* the socket took less than it was given: an edge will come */
    /* The socket was held up until then, for room or a token: what came before is not late by
     * that. 0: never. */
    nsec_t held_until;
    bool has_followed; /* the reply to the request that `latency` follows is in here */
    size_t collected;  /* bytes of replies that are not in here yet, of all flows */
    unsigned count, sent;
    struct mmsghdr msgs[OUTBOX_REPLIES];
    struct iovec iov[OUTBOX_REPLIES];
    struct sockaddr_storage to[OUTBOX_REPLIES];
    char bytes[OUTBOX_REPLIES][UDP_FRAME_DATAGRAM_MAX];
};

static inline bool
outbox_is_full(const struct outbox *o)
{
    return o->count == OUTBOX_REPLIES;
}

/* Cuts the next datagram off the reply `out`, for this address. There must be room. */
void outbox_put(struct outbox *o, struct udp_frame *frame, struct chain *out,
                const struct sockaddr_storage *to, socklen_t to_len);
/* Sends all; false when the socket is full. What the kernel refuses for another reason is lost,
 * as datagrams may be. */
bool outbox_flush(struct outbox *o);
