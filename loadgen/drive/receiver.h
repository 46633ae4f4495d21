/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Replies: read, matched to their requests, counted; the sources are told. Its thread only.
 */
#pragma once

#include "loadgen/drive/source.h"

struct receiver {
    struct drive *d;
    struct sender *sender;
    struct source *sources; /* all of them */
    bool tells;             /* one of them wants to hear of answers */
    /* Of good replies in the window, so many like this one are not counted yet. */
    struct reply_done alike;
    unsigned alike_count;
};

void receiver_init(struct receiver *r, struct drive *d, struct sender *sender,
                   struct source *sources);

/* What became of a connection. */
enum receiver_end {
    RECEIVER_GOES_ON,
    RECEIVER_CLOSED, /* by intent: the server says so */
    RECEIVER_LOST,
    RECEIVER_DESYNC, /* lost as well: what came is not the protocol */
};

/* Reads once from c and takes the answers in it; *at is set to when that was. */
must_check enum receiver_end receiver_receive(struct receiver *r, struct lconn *c,
                                              nsec_t *at);
/* Counts what many replies have in common: once in a pass of the loop, and at its end. */
void receiver_count_alike(struct receiver *r);
/* Datagrams get lost one by one: those of c that wait for too long are given up, the others
 * are waited for. True when there were any. */
must_check bool receiver_give_up(struct receiver *r, struct lconn *c, nsec_t now);
