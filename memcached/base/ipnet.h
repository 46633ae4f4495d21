/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Networks in the notation of CIDR. Addresses are 16 bytes, IPv4 mapped into IPv6. Pure.
 */
#pragma once

#include "base/must.h"

#define IPNET_BYTES 16

struct ipnet {
    uint8_t ip[IPNET_BYTES];
    unsigned bits; /* of the 128 */
};

/* Reads "10.0.0.0/8", "fd00::/8" or a single address. False: *net is untouched. */
must_check bool ipnet_parse(struct ipnet *net, const char *text, size_t len);
bool ipnet_has(const struct ipnet *net, const uint8_t ip[IPNET_BYTES]);
/* The same network, however the rest of the address was written. */
bool ipnet_equals(const struct ipnet *a, const struct ipnet *b);
bool ipnet_is_v4(const uint8_t ip[IPNET_BYTES]);
