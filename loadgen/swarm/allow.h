/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * What an agent may be made to load: networks with ports, and limits, both given on the
 * agent's own command line. Asked about addresses, never about names. Pure.
 */
#pragma once

#include "base/ipnet.h"
#include "base/must.h"

#define ALLOW_RULES_MAX 64
#define ALLOW_TEXT "CIDR[:PORT[-PORT]]"

struct allow_rule {
    struct ipnet net;
    uint16_t first, last; /* ports */
    const char *path;     /* of a UNIX socket; NULL: network */
};

struct allow {
    struct allow_rule rules[ALLOW_RULES_MAX];
    unsigned count;
};

/* Of a run with its warm-up: what a leader asks for, and what an agent allows. */
struct allow_limits {
    double qps; /* 0: as much as it can; of what is allowed 0 is no limit, and so below */
    double conns;
    double seconds;
};

/* Without any other: this machine alone. */
void allow_loopback(struct allow *a);
/* Adds "10.0.0.0/8:11211", "10.1.2.3:11211-11220", "[fd00::]/8:11211", "fd00::1" (any port)
 * or "unix:/path". The text lives on. NULL, or a sentence. */
must_check const char *allow_add(void *allow, const char *text);

/* NULL when an address of the family of IP may be loaded, else why not. */
const char *allow_ip(const struct allow *a, const uint8_t ip[IPNET_BYTES], uint16_t port);
const char *allow_path(const struct allow *a, const char *path);
/* NULL when it is within the caps, else which it is above. A cap on the rate also refuses
 * a closed loop, which has no rate. */
const char *allow_within(const struct allow_limits *caps, const struct allow_limits *d);
