/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * How much deferred work a worker does between two looks at its sockets.
 *
 * Turns by the pace of guests. A small request that comes at a random moment of a turn of length T
 * waits for T / 2 in the mean and T at most; looking after each turn costs the others c / (T + c). So T
 * is a part of the time since the last such request (a guest) came: with t between two of them none waits
 * for more than t / PACE_GUEST_PARTS or the lower bound of T. It has an upper one, as replies are read while they are in a cache:
 * with 100 us a client on another CPU got fewer large values than with 25.
 *
 * Learned byte costs. Most of a turn of large replies is one system call that writes, and what it
 * takes is known only from earlier ones: a moving average of the time per byte (as that of round
 * trips, Jacobson 1988), over TLS apart. Pieces are cut, and begun, so that they fit the turn.
 *
 * Pure: every function takes the time. Owner: a worker's thread.
 */
#pragma once

#include "base/clock.h"
#include "qos/class.h"

#define PACE_TURN_MIN_NS (8 * NSEC_PER_USEC)
#define PACE_TURN_MAX_NS (25 * NSEC_PER_USEC)
#define PACE_GUEST_PARTS 400

/* Output is written in pieces of the largest size that fits a turn: each is a system call, and the
 * kernel's segments have up to 64 KiB. */
#define PACE_PIECE_MAX 131072
/* No request is run while so much output waits: it is written first. Nor is more written at once in the
 * turn of one of several that were ready together. */
#define PACE_OUT_MAX 65536
/* Also what any turn that is over still may write, and the most that a TLS record holds. */
#define PACE_PIECE_MIN 16384
#define PACE_PIECE_STEP 4096

/* Over what is written. */
enum pace_way { PACE_PLAIN, PACE_TLS, PACE_WAYS };

struct pace {
    nsec_t guest_at;             /* when the last one came; 0: none has */
    uint32_t byte_ps[PACE_WAYS]; /* picoseconds that writing a byte takes */
};

void pace_init(struct pace *p);

/* A request has been served where it was read. */
static inline void
pace_note_guest(struct pace *p, nsec_t now)
{
    p->guest_at = now;
}

/* Deferred work may take so long before the next look. */
nsec_t pace_turn_ns(const struct pace *p, nsec_t now);

/* A turn of the class is over, and so many bytes of finished replies are left that do not fit it:
 * do they wait for the connection's next one? Written now they would make the turn longer than T by
 * up to the time of a piece, and a small request's wait with it. The next turn comes when all
 * others in the queue have had theirs, so replies of small requests never wait; the turn's
 * requests end in time for them. */
static inline bool
pace_leaves(enum req_class lane, size_t bytes)
{
    return lane > CLASS_SMALL && bytes > PACE_PIECE_MIN;
}

/* A write of so many bytes took so long. One that was held up teaches little. */
void pace_learn(struct pace *p, enum pace_way way, size_t bytes, nsec_t took);
/* What writing so many bytes will take. */
nsec_t pace_write_ns(const struct pace *p, enum pace_way way, size_t bytes);
/* Bytes to write at once in a turn of this length. */
size_t pace_piece(const struct pace *p, enum pace_way way, nsec_t turn);
