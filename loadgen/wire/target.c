/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/target.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#define UNIX_PREFIX "unix:"

struct host_port {
    char host[TARGET_NAME_MAX];
    const char *port; /* into the text */
};

static bool
resolve_unix(struct target *t, const char *path, char *err, size_t err_len)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&t->addr;
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof un->sun_path) {
        snprintf(err, err_len, "socket path \"%s\" is empty or too long", path);
        return false;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    t->addr_len = sizeof *un;
    t->is_local = true;
    return true;
}

/* A colon separates the port only where it cannot belong to an IPv6 address. */
static bool
split_host(const char *text, struct host_port *hp)
{
    const char *end = NULL;
    const char *host = text;
    const char *colon = strchr(text, ':');
    hp->port = TARGET_PORT;
    if (text[0] == '[') {
        end = strchr(text, ']');
        host = text + 1;
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
        if (end[1] == ':') {
            hp->port = end + 2;
        }
    } else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
        end = colon;
        hp->port = colon + 1;
    } else {
        end = text + strlen(text);
    }
    size_t len = (size_t)(end - host);
    memcpy(hp->host, host, len);
    hp->host[len] = '\0';
    return len > 0 && hp->port[0] != '\0';
}

static bool
is_loopback(const struct sockaddr_storage *addr)
{
    if (addr->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
        return (ntohl(in->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
    return addr->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

bool
target_resolve(struct target *t, const char *text, char *err, size_t err_len)
{
    *t = (struct target){0};
    if (strlen(text) >= sizeof t->name) {
        snprintf(err, err_len, "server address too long");
        return false;
    }
    strcpy(t->name, text);
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        return resolve_unix(t, text + strlen(UNIX_PREFIX), err, err_len);
    }
    struct host_port hp;
    if (!split_host(text, &hp)) {
        snprintf(err, err_len, "\"%s\" is not host[:port]", text);
        return false;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found;
    int rc = getaddrinfo(hp.host, hp.port, &hints, &found);
    if (rc != 0) {
        /* Loopback-only machines have no configured address family. */
        hints.ai_flags = 0;
        rc = getaddrinfo(hp.host, hp.port, &hints, &found);
    }
    if (rc != 0) {
        snprintf(err, err_len, "cannot resolve \"%s\": %s", text, gai_strerror(rc));
        return false;
    }
    memcpy(&t->addr, found->ai_addr, found->ai_addrlen);
    t->addr_len = found->ai_addrlen;
    t->is_local = is_loopback(&t->addr);
    freeaddrinfo(found);
    return true;
}
