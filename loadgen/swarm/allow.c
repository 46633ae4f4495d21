/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/allow.h"

#include "base/num.h"
#include "base/part.h"

#define UNIX_PREFIX "unix:"
#define NET_TEXT_MAX 64
#define V4_AT 12 /* bytes of a mapped address before the IPv4 one */
#define V4_MULTICAST 0xe0
#define V4_MULTICAST_MASK 0xf0
#define V6_MULTICAST 0xff
#define ALLOW_WRONG "the networks are " ALLOW_TEXT ", IPv6 in brackets, or unix:PATH"

static const char *
add_rule(struct allow *a, const struct allow_rule *rule)
{
    if (a->count == ALLOW_RULES_MAX) {
        return "too many networks";
    }
    a->rules[a->count++] = *rule;
    return NULL;
}

void
allow_loopback(struct allow *a)
{
    *a = (struct allow){0};
    const char *wrong = allow_add(a, "127.0.0.0/8");
    wrong = wrong != NULL ? wrong : allow_add(a, "::1");
    must(wrong == NULL);
}

static bool
parse_ports(struct allow_rule *rule, const char *text)
{
    const char *dash = strchr(text, '-');
    size_t len = dash != NULL ? (size_t)(dash - text) : strlen(text);
    uint32_t first, last;
    if (!num_u32(text, len, &first)) {
        return false;
    }
    last = first;
    if (dash != NULL && !num_u32(dash + 1, strlen(dash + 1), &last)) {
        return false;
    }
    rule->first = (uint16_t)first;
    rule->last = (uint16_t)last;
    return first > 0 && first <= last && last <= UINT16_MAX;
}

/* "[fd00::]/8" without its brackets; *ports is what follows the last colon, or NULL. */
static bool
split_net(const char *text, char net[NET_TEXT_MAX], const char **ports)
{
    const char *close = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *from = close != NULL ? close : text;
    const char *colon = strchr(from, ':');
    if (text[0] == '[' && close == NULL) {
        return false;
    }
    if (close == NULL && colon != NULL && strchr(colon + 1, ':') != NULL) {
        colon = NULL; /* an IPv6 address without a port */
    }
    *ports = colon != NULL ? colon + 1 : NULL;
    size_t n = 0;
    for (const char *p = text; *p != '\0' && p != colon; p++) {
        bool is_bracket = close != NULL && (p == text || p == close);
        if (!is_bracket && n + 1 < NET_TEXT_MAX) {
            net[n++] = *p;
        }
    }
    net[n] = '\0';
    return n > 0 && n + 1 < NET_TEXT_MAX;
}

const char *
allow_add(void *allow, const char *text)
{
    struct allow *a = allow;
    struct allow_rule rule = {
        .first = 1, .last = UINT16_MAX, .path = part_after(text, UNIX_PREFIX)};
    char net[NET_TEXT_MAX];
    const char *ports;
    if (rule.path != NULL) {
        return rule.path[0] == '/' ? add_rule(a, &rule) : ALLOW_WRONG;
    }
    if (!split_net(text, net, &ports) || !ipnet_parse(&rule.net, net, strlen(net)) ||
        (ports != NULL && !parse_ports(&rule, ports))) {
        return ALLOW_WRONG;
    }
    return add_rule(a, &rule);
}

/* One packet to these goes to many machines, whatever the networks say. */
static const char *
is_for_many(const uint8_t ip[IPNET_BYTES])
{
    static const uint8_t none[IPNET_BYTES];
    if (ipnet_is_v4(ip)) {
        static const uint8_t all[] = {255, 255, 255, 255};
        if ((ip[V4_AT] & V4_MULTICAST_MASK) == V4_MULTICAST) {
            return "is a multicast address";
        }
        if (memcmp(ip + V4_AT, all, sizeof all) == 0) {
            return "is a broadcast address";
        }
        return memcmp(ip + V4_AT, none, 4) == 0 ? "is no address of a server" : NULL;
    }
    if (ip[0] == V6_MULTICAST) {
        return "is a multicast address";
    }
    return memcmp(ip, none, IPNET_BYTES) == 0 ? "is no address of a server" : NULL;
}

/* The last address of a network of IPv4, by which all its machines are meant. */
static bool
is_broadcast_of(const struct ipnet *net, const uint8_t ip[IPNET_BYTES])
{
    if (!ipnet_is_v4(ip) || net->bits >= 8 * IPNET_BYTES - 1 || net->bits < 8 * V4_AT) {
        return false;
    }
    for (unsigned bit = net->bits; bit < 8 * IPNET_BYTES; bit++) {
        if ((ip[bit / 8] >> (7 - bit % 8) & 1) == 0) {
            return false;
        }
    }
    return ipnet_has(net, ip);
}

const char *
allow_ip(const struct allow *a, const uint8_t ip[IPNET_BYTES], uint16_t port)
{
    const char *why = is_for_many(ip);
    if (why != NULL) {
        return why;
    }
    bool is_allowed = false;
    for (unsigned i = 0; i < a->count; i++) {
        const struct allow_rule *r = &a->rules[i];
        if (r->path != NULL || !ipnet_has(&r->net, ip)) {
            continue;
        }
        if (is_broadcast_of(&r->net, ip)) {
            return "is a broadcast address";
        }
        is_allowed = is_allowed || (port >= r->first && port <= r->last);
    }
    return is_allowed ? NULL : "is outside what the agent allows";
}

const char *
allow_path(const struct allow *a, const char *path)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (a->rules[i].path != NULL && strcmp(a->rules[i].path, path) == 0) {
            return NULL;
        }
    }
    return "is outside what the agent allows";
}

const char *
allow_within(const struct allow_limits *caps, const struct allow_limits *d)
{
    static char why[128];
    const struct {
        bool is_beyond;
        const char *what, *cap, *unit;
        double limit;
    } rules[] = {
        {d->qps == 0, "a closed loop, which may send more", "qps", "", caps->qps},
        {d->qps > caps->qps, "more requests a second", "qps", "", caps->qps},
        {d->conns > caps->conns, "more connections", "conns", "", caps->conns},
        {d->seconds > caps->seconds, "a longer run", "time", "s", caps->seconds},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].limit > 0 && rules[i].is_beyond) {
            snprintf(why, sizeof why, "%s than the agent allows (--agent-max-%s=%.15g%s)",
                     rules[i].what, rules[i].cap, rules[i].limit, rules[i].unit);
            return why;
        }
    }
    return NULL;
}
