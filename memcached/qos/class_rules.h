/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Rules that declare a class: of all requests of a client's address, or of the keys that
 * begin in some way. Filled by main, constant afterwards. Pure.
 *
 * The most exact rule wins: the longest network, the longest prefix. Two rules for the same
 * network or prefix are refused.
 */
#pragma once

#include "base/ipnet.h"
#include "qos/class.h"

#define CLASS_RULES_MAX 64 /* of each kind */
#define CLASS_PREFIX_MAX 250

struct class_peer_rule {
    struct ipnet net;
    enum req_class class;
};

struct class_key_rule {
    char prefix[CLASS_PREFIX_MAX];
    uint8_t len;
    enum req_class class;
};

struct class_rules {
    struct class_peer_rule peers[CLASS_RULES_MAX]; /* longest first */
    struct class_key_rule keys[CLASS_RULES_MAX];   /* longest first */
    unsigned peer_count, key_count;
};

/* Adds "peer:10.0.0.0/8=bulk" or "key:batch:=background"; NULL, or what is wrong with it. */
must_check const char *class_rules_add(void *to, const char *text);
/* CLASS_NONE: no rule. */
enum req_class class_rules_peer(const struct class_rules *r,
                                const uint8_t ip[IPNET_BYTES]);
enum req_class class_rules_key(const struct class_rules *r, const char *key, size_t len);
