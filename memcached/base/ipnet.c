/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/ipnet.h"

#include <arpa/inet.h>

#include "base/num.h"

#define V4_BITS 32
#define V6_BITS 128
#define V4_PREFIX_BYTES 12
#define TEXT_MAX 64

static const uint8_t v4_prefix[V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

bool
ipnet_is_v4(const uint8_t ip[IPNET_BYTES])
{
    return memcmp(ip, v4_prefix, sizeof v4_prefix) == 0;
}

bool
ipnet_parse(struct ipnet *to, const char *text, size_t len)
{
    char host[TEXT_MAX];
    const char *slash = len > 0 ? memchr(text, '/', len) : NULL;
    size_t host_len = slash != NULL ? (size_t)(slash - text) : len;
    if (host_len >= sizeof host) {
        return false;
    }
    memcpy(host, text, host_len);
    host[host_len] = '\0';
    struct ipnet net = {.bits = V6_BITS};
    unsigned family_bits = V6_BITS;
    if (inet_pton(AF_INET, host, net.ip + V4_PREFIX_BYTES) == 1) {
        memcpy(net.ip, v4_prefix, sizeof v4_prefix);
        family_bits = V4_BITS;
    } else if (inet_pton(AF_INET6, host, net.ip) != 1) {
        return false;
    }
    uint32_t bits;
    if (slash != NULL) {
        if (!num_u32(slash + 1, len - host_len - 1, &bits) || bits > family_bits) {
            return false;
        }
        net.bits = V6_BITS - family_bits + bits;
    }
    *to = net;
    return true;
}

bool
ipnet_has(const struct ipnet *net, const uint8_t ip[IPNET_BYTES])
{
    unsigned bytes = net->bits / 8;
    unsigned rest = net->bits % 8;
    if (memcmp(net->ip, ip, bytes) != 0) {
        return false;
    }
    uint8_t mask = (uint8_t)(0xff00u >> rest);
    return rest == 0 || ((net->ip[bytes] ^ ip[bytes]) & mask) == 0;
}

bool
ipnet_equals(const struct ipnet *a, const struct ipnet *b)
{
    return a->bits == b->bits && ipnet_has(a, b->ip);
}
