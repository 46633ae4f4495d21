/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/guard.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SOURCE_V6_BYTES 8 /* a client has a whole /64 to send from */
#define V4_PREFIX_BYTES 12

static const uint8_t v6_loopback[GUARD_IP_BYTES] = {[15] = 1};

bool
guard_trust(struct guard_conf *conf, const char *text, size_t len)
{
    if (conf->trusted_count == GUARD_NETS_MAX ||
        !ipnet_parse(&conf->trusted[conf->trusted_count], text, len)) {
        return false;
    }
    conf->trusted_count++;
    return true;
}

bool
guard_is_trusted(const struct guard_conf *conf, const uint8_t ip[GUARD_IP_BYTES])
{
    if ((ipnet_is_v4(ip) && ip[V4_PREFIX_BYTES] == 127) ||
        memcmp(ip, v6_loopback, sizeof v6_loopback) == 0) {
        return true; /* the kernel drops these when they come from outside */
    }
    for (unsigned i = 0; i < conf->trusted_count; i++) {
        if (ipnet_has(&conf->trusted[i], ip)) {
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
    size_t len = ipnet_is_v4(ip) ? GUARD_IP_BYTES : SOURCE_V6_BYTES;
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
