/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a connection has been asking for lately, so that its next request can be put in its place
 * before it is read.
 *
 * The law (multi-level feedback, Corbato et al. 1962): how long a job will run is foretold by how
 * long it ran lately. Reading costs as much as serving a small request, so 16 deferred requests in a
 * row send the next one, unread, to their queue, and a burst of 8 sends it behind what is read at
 * once. One short request ends either: a wrong guess costs one wait.
 *
 * Pure; one for each connection, its worker's thread only. Zero-initialised.
 */
#pragma once

#include "base/clock.h"
#include "qos/class.h"

#define HISTORY_GREEDY 8 /* requests at once that make a connection greedy */

/* Trickles. A read that completes no request costs as much as one that does, and no limit sees it.
 * So each is charged, and each request pays for one (a token bucket whose tokens requests earn): a
 * client never costs more than two reads a request and this many, or it waits behind all others. */
#define HISTORY_DEBT_FREE 8
#define HISTORY_DEBT_MOST 64 /* no more are remembered */
#define HISTORY_PIECE                                                                    \
    512 /* a part of so many bytes is what a network makes of a long request */
/* New connections of an address from which one has trickled owe at once for this long. */
#define HISTORY_PEERS 64
#define HISTORY_PEER_NS NSEC_PER_SEC

struct history {
    uint16_t
        recent; /* a bit for each of the last 16 requests: it was of a deferred class */
    uint16_t burst; /* requests served since it last waited for the client */
    uint16_t floor; /* of a burst: HISTORY_GREEDY while the connection trickles, else 0 */
    bool is_greedy; /* its last burst was long, or it trickles */
    uint8_t class;  /* enum req_class of the request at the head, or the last one */
    uint8_t debt;   /* reads that completed no request, less requests until `paid` */
    uint32_t paid;  /* requests served when the debt was last reckoned; wraps */
    uint64_t came;  /* of an unfinished request, when a read was last charged */
};

/* A worker's: when an address was last seen to trickle, by its key. */
struct history_peers {
    nsec_t trickled_at[HISTORY_PEERS];
};

/* A request has been served. */
static inline void
history_note(struct history *h, enum req_class class)
{
    h->recent = (uint16_t)(h->recent << 1 | !class_is_inline(class));
}

/* n of them have. */
static inline void
history_note_many(struct history *h, enum req_class class, unsigned n)
{
    uint32_t bits = class_is_inline(class) ? 0 : UINT16_MAX;
    h->recent = (uint16_t)(n < 16 ? (h->recent << n | bits >> (16 - n)) : bits);
}

/* A turn that served `requests` is over; `waits`: for the client, all that came is served. */
static inline void
history_end_turn(struct history *h, unsigned requests, bool waits)
{
    unsigned burst = h->burst + requests;
    h->is_greedy = burst >= HISTORY_GREEDY;
    h->burst = waits ? h->floor : (uint16_t)(h->is_greedy ? HISTORY_GREEDY : burst);
}

static inline bool
history_trickles(const struct history *h)
{
    return h->floor != 0;
}

/* A connection begins. peer: the key of its address; 0: none. */
void history_begin(struct history *h, const struct history_peers *peers, uint64_t peer,
                   nsec_t now);
/* A turn has completed no request, and `came` bytes of one that is unfinished are here. served: all
 * requests of the connection so far. True: it is charged with a read. */
bool history_charge(struct history *h, struct history_peers *peers, uint64_t peer,
                    uint64_t came, uint32_t served, nsec_t now);
/* The queue of one that is greedy or trickles; what it has served since then is paid back. */
enum req_class history_queue(struct history *h, uint32_t served);

/* The queue in which the connection waits to be read; CLASS_NONE: it is read at once. */
static inline enum req_class
history_lane(struct history *h, uint32_t served)
{
    if (h->recent == UINT16_MAX) {
        return h->class > CLASS_SMALL ? (enum req_class)h->class : CLASS_SMALL;
    }
    return h->is_greedy ? history_queue(h, served) : CLASS_NONE;
}
