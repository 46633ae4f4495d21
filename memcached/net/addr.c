/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

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
