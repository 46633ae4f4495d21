/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/guard.h"

#include <arpa/inet.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/num.h"

#define V4_BITS 32
#define V6_BITS 128
#define SOURCE_V6_BYTES 8 /* a client has a whole /64 to send from */
#define V4_PREFIX_BYTES 12
#define TEXT_MAX 64

static const uint8_t v4_prefix[V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};
static const uint8_t v6_loopback[GUARD_IP_BYTES] = {[15] = 1};

static bool
is_v4(const uint8_t ip[GUARD_IP_BYTES])
{
    return memcmp(ip, v4_prefix, sizeof v4_prefix) == 0;
}

bool
guard_trust(struct guard_conf *conf, const char *text, size_t len)
{
    char host[TEXT_MAX];
    const char *slash = len > 0 ? memchr(text, '/', len) : NULL;
    size_t host_len = slash != NULL ? (size_t)(slash - text) : len;
    if (conf->trusted_count == GUARD_NETS_MAX || host_len >= sizeof host) {
        return false;
    }
    memcpy(host, text, host_len);
    host[host_len] = '\0';
    struct guard_net net = {.bits = V6_BITS};
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
    conf->trusted[conf->trusted_count++] = net;
    return true;
}

static bool
is_in_net(const struct guard_net *net, const uint8_t ip[GUARD_IP_BYTES])
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
guard_is_trusted(const struct guard_conf *conf, const uint8_t ip[GUARD_IP_BYTES])
{
    if ((is_v4(ip) && ip[V4_PREFIX_BYTES] == 127) ||
        memcmp(ip, v6_loopback, sizeof v6_loopback) == 0) {
        return true; /* the kernel lets nobody forge these from outside */
    }
    for (unsigned i = 0; i < conf->trusted_count; i++) {
        if (is_in_net(&conf->trusted[i], ip)) {
            return true;
        }
    }
    return false;
}

void
guard_init(struct guard *g, unsigned workers, uint64_t seed)
{
    memset(g, 0, sizeof *g);
    g->rate = GUARD_RATE_BYTES / workers + 1;
    g->seed = seed;
}

static size_t
index_of(const struct guard *g, const uint8_t ip[GUARD_IP_BYTES])
{
    size_t len = is_v4(ip) ? GUARD_IP_BYTES : SOURCE_V6_BYTES;
    return XXH3_64bits_withSeed(ip, len, g->seed) % GUARD_SOURCES;
}

static nsec_t
price(const struct guard *g, uint64_t bytes)
{
    return bytes * NSEC_PER_SEC / g->rate;
}

bool
guard_admits(const struct guard *g, const uint8_t ip[GUARD_IP_BYTES], nsec_t now)
{
    return g->tat[index_of(g, ip)] < now + price(g, GUARD_BURST_BYTES);
}

void
guard_charge(struct guard *g, const uint8_t ip[GUARD_IP_BYTES], uint64_t bytes,
             nsec_t now)
{
    nsec_t *tat = &g->tat[index_of(g, ip)];
    *tat = (*tat > now ? *tat : now) + price(g, bytes);
}
