/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/target.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/num.h"
#include "base/part.h"
#include "loadgen/wire/codec.h"

#define UNIX_PREFIX "unix:"
#define PORT_MAX 65535

const char *const transport_names[TRANSPORTS] = {
    [TRANSPORT_TCP] = "tcp",
    [TRANSPORT_UNIX] = "unix",
    [TRANSPORT_UDP] = "udp",
    [TRANSPORT_TLS] = "tls",
};

static bool
resolve_unix(struct target *t, const char *path, char *err, size_t err_len)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&t->addr;
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof un->sun_path) {
        snprintf(err, err_len, "socket path \"%s\" is empty or too long", path);
        t->is_malformed = true;
        return false;
    }
    strcpy(t->host, path);
    t->transport = TRANSPORT_UNIX;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    t->addr_len = sizeof *un;
    t->is_local = true;
    return true;
}

unsigned
target_ports(const char *text, size_t *at, unsigned *first)
{
    const char *colon = strrchr(text, ':');
    const char *dash = colon != NULL ? strchr(colon, '-') : NULL;
    uint32_t low, high;
    /* Not of a path, and not of a name such as "a-b" without a port. */
    if (dash == NULL || strchr(colon, '/') != NULL ||
        part_after(text, UNIX_PREFIX) != NULL) {
        return 1;
    }
    if (!num_u32(colon + 1, (size_t)(dash - colon - 1), &low) ||
        !num_u32(dash + 1, strlen(dash + 1), &high) || low == 0 || high < low ||
        high > PORT_MAX) {
        return 0;
    }
    *at = (size_t)(colon + 1 - text);
    *first = low;
    return high - low + 1;
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

static bool
resolve_host(struct target *t, const char *text, const char *port, char *err,
             size_t err_len)
{
    if (!part_host(text, t->host, sizeof t->host, &port)) {
        snprintf(err, err_len, "\"%s\" is not host[:port]", text);
        t->is_malformed = true;
        return false;
    }
    if (!num_may_be_port(port, strlen(port))) {
        snprintf(err, err_len, "\"%s\": a port is between 1 and 65535", text);
        t->is_malformed = true;
        return false;
    }
    struct addrinfo hints = {
        .ai_socktype = t->transport == TRANSPORT_UDP ? SOCK_DGRAM : SOCK_STREAM,
        .ai_flags = AI_ADDRCONFIG,
    };
    struct addrinfo *found;
    int rc = getaddrinfo(t->host, port, &hints, &found);
    if (rc != 0) {
        /* Loopback-only machines have no configured address family. */
        hints.ai_flags = 0;
        rc = getaddrinfo(t->host, port, &hints, &found);
    }
    if (rc != 0) {
        return fail_because(err, err_len, "cannot resolve \"%s\": %s", text,
                            gai_strerror(rc));
    }
    memcpy(&t->addr, found->ai_addr, found->ai_addrlen);
    t->addr_len = found->ai_addrlen;
    t->is_local = is_loopback(&t->addr);
    /* The same place in both families. */
    t->port = ntohs(((const struct sockaddr_in *)&t->addr)->sin_port);
    freeaddrinfo(found);
    return true;
}

/* "TRANSPORT://" */
static bool
split_transport(const char **text, enum transport *transport)
{
    char name[8] = "";
    const char *mark = strstr(*text, "://");
    if (mark == NULL) {
        return true;
    }
    if ((size_t)(mark - *text) < sizeof name) {
        memcpy(name, *text, (size_t)(mark - *text));
    }
    *text = mark + strlen("://");
    *transport =
        (enum transport)part_find(transport_names, TRANSPORTS, name, strlen(name));
    return *transport < TRANSPORTS;
}

/* A protocol may have been meant. */
static void
complain_of_transport(const char *name, char *err, size_t err_len)
{
    static const char mark[] = "://";
    char scheme[16];
    snprintf(scheme, sizeof scheme, "%.*s", (int)(strstr(name, mark) - name), name);
    if (codec_find(scheme) != NULL) {
        snprintf(err, err_len, "\"%s\": %s is no transport: write %s --protocol=%s", name,
                 scheme, strstr(name, mark) + strlen(mark), scheme);
    } else {
        snprintf(err, err_len, "\"%s\": the transports are tcp, unix, udp and tls", name);
    }
}

/* Without a transport. */
static bool
resolve(struct target *t, const char *text, const char *port, char *err, size_t err_len)
{
    const char *path = part_after(text, UNIX_PREFIX);
    if (path != NULL || t->transport == TRANSPORT_UNIX) {
        return resolve_unix(t, path != NULL ? path : text, err, err_len);
    }
    return resolve_host(t, text, port, err, err_len);
}

bool
target_resolve(struct target *t, const char *text, enum transport otherwise, char *err,
               size_t err_len)
{
    *t = (struct target){.transport = otherwise};
    if (strlen(text) >= sizeof t->name) {
        snprintf(err, err_len, "server address too long");
        t->is_malformed = true;
        return false;
    }
    strcpy(t->name, text);
    if (!split_transport(&text, &t->transport)) {
        complain_of_transport(t->name, err, err_len);
        t->is_malformed = true;
        return false;
    }
    return resolve(t, text, TARGET_PORT, err, err_len);
}

bool
target_resolve_at(struct target *t, const char *text, const char *port, char *err,
                  size_t err_len)
{
    *t = (struct target){.transport = TRANSPORT_TCP};
    must(strlen(text) < sizeof t->name);
    strcpy(t->name, text);
    return resolve(t, text, port, err, err_len);
}

int
target_connect(const struct target *t, nsec_t until)
{
    int fd = socket(t->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1 || connect(fd, (const struct sockaddr *)&t->addr, t->addr_len) == 0) {
        return fd;
    }
    int error = errno;
    if (error == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        socklen_t len = sizeof error;
        nsec_t now = clock_now();
        int ms = until > now ? (int)((until - now) / NSEC_PER_MSEC) + 1 : 0;
        error = ETIMEDOUT;
        if (poll(&p, 1, ms) > 0) {
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
        }
        if (error == 0) {
            return fd;
        }
    }
    close(fd);
    errno = error;
    return -1;
}

const char *
target_place(const struct target *t, char place[TARGET_PLACE_MAX])
{
    char port[8];
    snprintf(port, sizeof port, ":%u", (unsigned)t->port);
    const char *colon = strrchr(t->name, ':');
    if (t->transport == TRANSPORT_UNIX || (colon != NULL && strcmp(colon, port) == 0)) {
        return strcpy(place, t->name);
    }
    bool is_v6 = strchr(t->host, ':') != NULL;
    snprintf(place, TARGET_PLACE_MAX, is_v6 ? "[%s]%s" : "%s%s", t->host, port);
    return place;
}
