/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/addr.h"

#include <arpa/inet.h>
#include <sys/un.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define V4_PREFIX_BYTES 12

static const uint8_t v4_prefix[V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

/* Only the bytes that the kernel said are there: a client's path has no terminator. */
static void
format_unix(const struct sockaddr_un *un, socklen_t len, char *dst, size_t dst_len)
{
    size_t head = offsetof(struct sockaddr_un, sun_path);
    size_t path = len > head ? (size_t)len - head : 0;
    if (path == 0 || un->sun_path[0] == '\0') {
        snprintf(dst, dst_len, "unix:client");
        return;
    }
    snprintf(dst, dst_len, "unix:%.*s", (int)path, un->sun_path);
}

void
addr_format(const char *transport, const struct sockaddr *addr, socklen_t len, char *dst,
            size_t dst_len)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
        snprintf(dst, dst_len, "%s:%s:%u", transport, text, ntohs(in->sin_port));
    } else if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)addr;
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof text);
        snprintf(dst, dst_len, "%s6:[%s]:%u", transport, text, ntohs(in->sin6_port));
    } else {
        format_unix((const struct sockaddr_un *)(const void *)addr, len, dst, dst_len);
    }
}

void
addr_format_own(const char *transport, int fd, char *dst, size_t dst_len)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    must(getsockname(fd, (struct sockaddr *)&addr, &len) == 0);
    addr_format(transport, (struct sockaddr *)&addr, len, dst, dst_len);
}

void
addr_put_host(const char *formatted, char *dst, size_t dst_len)
{
    const char *begin = strchr(formatted, ':');
    const char *end = strrchr(formatted, ':');
    begin = begin != NULL ? begin + 1 : formatted;
    size_t len = end != NULL && end > begin ? (size_t)(end - begin) : strlen(begin);
    snprintf(dst, dst_len, "%.*s", (int)len, begin);
}

bool
addr_ip(const struct peer *peer, uint8_t ip[ADDR_IP_BYTES])
{
    switch (peer->addr.any.sa_family) {
    case AF_INET:
        memcpy(ip, v4_prefix, sizeof v4_prefix);
        memcpy(ip + sizeof v4_prefix, &peer->addr.v4.sin_addr,
               sizeof peer->addr.v4.sin_addr);
        return true;
    case AF_INET6:
        memcpy(ip, &peer->addr.v6.sin6_addr, ADDR_IP_BYTES);
        return true;
    default:
        return false;
    }
}

bool
addr_is_local(const struct peer *peer)
{
    uint8_t ip[ADDR_IP_BYTES];
    if (!addr_ip(peer, ip)) {
        return peer->addr.any.sa_family == AF_UNIX;
    }
    return memcmp(ip, &in6addr_loopback, sizeof ip) == 0 ||
           (memcmp(ip, v4_prefix, sizeof v4_prefix) == 0 &&
            ip[sizeof v4_prefix] == IN_LOOPBACKNET);
}

struct peer
addr_peer(const struct sockaddr *addr, socklen_t len, uint64_t seed)
{
    struct peer peer = {.addr.any.sa_family = addr->sa_family};
    uint8_t ip[ADDR_IP_BYTES];
    if (len <= sizeof peer.addr) {
        memcpy(&peer.addr, addr, len);
        peer.len = len;
    }
    if (addr_ip(&peer, ip)) {
        uint64_t key = XXH3_64bits_withSeed(ip, sizeof ip, seed);
        peer.key = key != 0 ? key : 1;
    }
    return peer;
}

/* No byte of it ends a word or a line of a reply (stats conns, the live log). */
static void
make_word(char *text)
{
    for (unsigned char *p = (unsigned char *)text; *p != '\0'; p++) {
        *p = *p > ' ' && *p != 0x7f ? *p : '_';
    }
}

bool
addr_describe(const struct peer *peer, int fd, char *dst, size_t dst_len)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    sa_family_t family = peer->addr.any.sa_family;
    if (family == AF_INET || family == AF_INET6) {
        addr_format("tcp", &peer->addr.any, peer->len, dst, dst_len);
        return true;
    }
    if (getpeername(fd, (struct sockaddr *)&addr, &len) == 0) {
        addr_format("unix", (struct sockaddr *)&addr, len, dst, dst_len);
        make_word(dst); /* the client has chosen it */
    } else {
        snprintf(dst, dst_len, "unknown");
    }
    return false;
}
