/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * memcached's datagrams: the header of eight bytes before each, and replies put together from
 * several of them in any order. Pure: no sockets, no time; no allocation after dgram_init.
 *
 *     | request id, 2 | number of this one, 2 | how many there are, 2 | 0, 2 | bytes
 */
#pragma once

#include "base/must.h"

#define DGRAM_HEADER 8
#define DGRAM_REQUEST_MAX 65507 /* bytes of a datagram over IPv4, header included */
#define DGRAM_PART_MAX 2048     /* longest one of a reply of several, header included */
#define DGRAM_IDS (UINT16_MAX + 1)

struct dgram_partial;

/* What became of the last request with a number; nothing of note, or it is on its way. */
enum dgram_past {
    DGRAM_UNKNOWN,
    DGRAM_WAS_GIVEN_UP, /* its reply is late */
    DGRAM_WAS_REFUSED,  /* the rest of what was no reply */
};

/* Replies of one connection of which a part has come, and what came to nothing. */
struct dgram {
    struct dgram_partial *partials;
    char *bytes; /* of each: parts_max places of DGRAM_PART_MAX */
    unsigned len, parts_max, turn;
    unsigned used; /* of the partials */
    uint8_t *past; /* one an id */
};

/* For replies of at most that many bytes, to so many requests at once. Memory is bounded: when
 * more replies are incomplete than there is room for, the oldest is forgotten. */
void dgram_init(struct dgram *d, size_t reply_max, unsigned requests);
void dgram_fini(struct dgram *d);
/* Forgets what has come in part. */
void dgram_reset(struct dgram *d);
/* Forgets what has come in part for that request. */
void dgram_forget(struct dgram *d, uint16_t id);

void dgram_remember(struct dgram *d, uint16_t id, enum dgram_past past);
enum dgram_past dgram_past(const struct dgram *d, uint16_t id);

/* The header of a request that is one datagram: nothing is known of an earlier one with this
 * number any more. */
size_t dgram_put_header(struct dgram *d, char *dst, uint16_t id);

/* Which request a datagram answers; false when it is none. */
must_check bool dgram_id(const char *datagram, size_t len, uint16_t *id);

enum dgram_outcome {
    DGRAM_WHOLE,     /* *reply and *reply_len: valid until the next call */
    DGRAM_PART,      /* more must come */
    DGRAM_DUPLICATE, /* was there before */
    DGRAM_BAD, /* contradicts itself or others, or is too long: the reply is forgotten */
};

/* A datagram that answers a request on its way. */
must_check enum dgram_outcome dgram_take(struct dgram *d, const char *datagram,
                                         size_t len, const char **reply,
                                         size_t *reply_len);
