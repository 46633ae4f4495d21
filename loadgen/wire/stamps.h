/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Time stamps that the kernel or the network card puts on what a connection sends and
 * receives (SO_TIMESTAMPING), so that the time in between is known without the client's own
 * share of it. TCP only. Its thread only; stamps_card: main thread.
 */
#pragma once

#include "base/clock.h"
#include "base/must.h"

enum stamps_by {
    STAMPS_USER,   /* none but the client's own */
    STAMPS_KERNEL, /* when a packet goes to the card's driver, and comes from it */
    STAMPS_CARD,   /* when it is on the wire; needs a card that can */
};

#define STAMPS_KEPT 4096 /* sends; a stamp of one longer ago is forgotten */

struct stamps {
    enum stamps_by by;
    uint32_t first, count; /* a ring; first grows for ever */
    struct {
        uint32_t last_byte; /* of the stream, modulo 2^32 */
        nsec_t at;          /* by the clock of its source */
    } sent[STAMPS_KEPT];
    nsec_t received_at; /* what was received last; 0: it had no stamp */
};

/* Of a socket that is connected and has sent nothing. False with errno. */
must_check bool stamps_begin(struct stamps *s, int fd, enum stamps_by by);
/* Takes in the stamps of what was sent. */
void stamps_collect(struct stamps *s, int fd);
/* As recv without waiting; the stamp is in received_at. */
must_check long stamps_receive(struct stamps *s, int fd, char *to, size_t room);
/* The time from when the request that begins with this byte of the stream was sent to when
 * the last bytes were received, and forgets what was sent before. False when it is not
 * known. */
must_check bool stamps_between(struct stamps *s, uint64_t begin, nsec_t *between);
/* Has a card stamp all packets. NULL, or why it cannot (errno's text). */
must_check const char *stamps_card(const char *interface);
