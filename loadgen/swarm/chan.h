/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * One end of a connection between a leader and an agent: frames in and out, numbered, and
 * sealed once the proofs are given. A frame that is replayed, out of order, of another
 * session or changed on its way ends the connection. Its thread only.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"
#include "loadgen/swarm/frame.h"
#include "loadgen/swarm/seal.h"

/* Bytes that wait to be sent, before it is given up. */
#define CHAN_OUT_MAX (8u * FRAME_MAX)

struct chan {
    int fd; /* -1: closed */
    enum seal_side side;
    struct seal seal;
    uint64_t session;  /* of the frames, 0 until agreed on */
    uint64_t features; /* bits of the other side's hello */
    uint64_t sent, received;
    size_t max; /* bytes of a frame that is taken */
    struct frame_out making;
    uint8_t *in;
    size_t in_at, in_len, in_cap;
    uint8_t *out;
    size_t out_at, out_len, out_cap;
    const char *error; /* why it was given up; NULL: it was not */
};

enum chan_next {
    CHAN_FRAME,
    CHAN_NONE, /* not yet */
    CHAN_LOST, /* c->error says why */
};

/* Takes over a connected, non-blocking socket. */
void chan_init(struct chan *c, int fd, enum seal_side side);
void chan_fini(struct chan *c);

/* Begins a frame; fields are put into what it returns. */
struct frame_out *chan_begin(struct chan *c, uint16_t type);
/* Sends it, or as much as goes now. False: lost. */
must_check bool chan_send(struct chan *c);
/* Sends more of what waits. False: lost. */
must_check bool chan_flush(struct chan *c);
/* POLLIN, and POLLOUT while something waits. */
short chan_events(const struct chan *c);
/* Reads what has come. False: lost, though frames may be left for chan_next. */
must_check bool chan_fill(struct chan *c);
/* The next frame that has come, valid until the next call. */
enum chan_next chan_next(struct chan *c, struct frame *f);
/* Waits for one until `until`: NONE when it did not come. */
enum chan_next chan_await(struct chan *c, nsec_t until, struct frame *f);
/* Sends what waits until `until`, and leaves the rest. */
void chan_drain(struct chan *c, nsec_t until);
