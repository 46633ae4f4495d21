/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What a UDP client may get. A datagram's source address can be forged, and then the reply
 * hits a bystander; so a reply is paid for: eight times the bytes of its request are free,
 * the rest comes out of a small allowance per source. Loopback and networks named by the
 * operator are trusted and pay nothing.
 *
 * Pure: addresses are 16 bytes (IPv4 mapped into IPv6), the time is an argument. A struct
 * guard belongs to one worker's thread; the conf is shared and constant.
 */
#pragma once

#include "base/clock.h"
#include "base/ipnet.h"
#include "base/must.h"

#define GUARD_IP_BYTES IPNET_BYTES
#define GUARD_NETS_MAX 32
#define GUARD_SOURCES 4096       /* allowances; sources that collide share one */
#define GUARD_FREE_FACTOR 8      /* bytes of reply per byte of request */
#define GUARD_REPLY_DATAGRAMS 8  /* longest reply */
#define GUARD_RATE_BYTES 65536   /* allowance a second, of all workers together */
#define GUARD_BURST_BYTES 65536u /* that a source may use at once, per worker */

struct guard_conf {
    bool is_on;
    struct ipnet trusted[GUARD_NETS_MAX];
    unsigned trusted_count;
};

struct guard {
    uint64_t rate; /* bytes a second */
    uint64_t seed;
    nsec_t tat[GUARD_SOURCES]; /* when the allowance will be whole again */
};

/* Adds "10.0.0.0/8", "fd00::/8" or a single address. False: not one, or too many. */
must_check bool guard_trust(struct guard_conf *conf, const char *text, size_t len);
bool guard_is_trusted(const struct guard_conf *conf, const uint8_t ip[GUARD_IP_BYTES]);

/* One of `workers` guards of the process. */
void guard_init(struct guard *g, unsigned workers, uint64_t seed);
/* False: this source has used up its allowance. */
must_check bool guard_admits(const struct guard *g, const uint8_t ip[GUARD_IP_BYTES],
                             nsec_t now);
/* Takes bytes that no request has paid for. */
void guard_charge(struct guard *g, const uint8_t ip[GUARD_IP_BYTES], uint64_t bytes,
                  nsec_t now);
