/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"

#define UNIX_PREFIX "unix:"
#define BACKLOG 16
#define PORT_TEXT_MAX 16

static bool
resolve_unix(struct endpoint *e, const char *path, char *err, size_t err_len)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&e->addr;
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof un->sun_path) {
        snprintf(err, err_len, "socket path \"%s\" is empty or too long", path);
        return false;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    e->addr_len = sizeof *un;
    return true;
}

/* *port is what follows the host, or stays. A colon separates only where it cannot belong to
 * an IPv6 address. */
static bool
split(const char *text, char host[ENDPOINT_NAME_MAX], const char **port)
{
    const char *from = text, *end = text + strlen(text), *colon = strchr(text, ':');
    if (text[0] == '[') {
        from = text + 1;
        end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return false;
        }
        *port = end[1] == ':' ? end + 2 : *port;
    } else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
        end = colon;
        *port = colon + 1;
    }
    size_t len = (size_t)(end - from);
    memcpy(host, from, len);
    host[len] = '\0';
    return len > 0 && **port != '\0';
}

bool
endpoint_resolve(struct endpoint *e, const char *text, unsigned port, char *err,
                 size_t err_len)
{
    char host[ENDPOINT_NAME_MAX], standard[PORT_TEXT_MAX];
    const char *where = standard;
    *e = (struct endpoint){.addr_len = 0};
    snprintf(standard, sizeof standard, "%u", port);
    if (strlen(text) + PORT_TEXT_MAX >= sizeof e->name) {
        snprintf(err, err_len, "address too long");
        return false;
    }
    if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        strcpy(e->name, text);
        return resolve_unix(e, text + strlen(UNIX_PREFIX), err, err_len);
    }
    if (!split(text, host, &where)) {
        snprintf(err, err_len, "\"%s\" is not host[:port]", text);
        return false;
    }
    if (!num_may_be_port(where, strlen(where))) {
        snprintf(err, err_len, "\"%s\": a port is between 1 and 65535", text);
        return false;
    }
    snprintf(e->name, sizeof e->name, strchr(host, ':') != NULL ? "[%s]:%s" : "%s:%s",
             host, where);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int rc = getaddrinfo(host, where, &hints, &found);
    if (rc != 0) {
        snprintf(err, err_len, "cannot resolve \"%s\": %s", text, gai_strerror(rc));
        return false;
    }
    memcpy(&e->addr, found->ai_addr, found->ai_addrlen);
    e->addr_len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool
endpoint_is_local(const struct endpoint *e)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&e->addr;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&e->addr;
    switch (e->addr.ss_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return (ntohl(in->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
    default:
        return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
    }
}

static int
fail(int fd, const struct endpoint *e, const char *what, char *err, size_t err_len)
{
    snprintf(err, err_len, "cannot %s %s: %s", what, e->name, strerror(errno));
    if (fd != -1) {
        close(fd);
    }
    return -1;
}

/* A socket file without a listener is in the way. */
static void
remove_stale(const struct endpoint *e)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&e->addr;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd != -1) {
        if (connect(fd, (const struct sockaddr *)&e->addr, e->addr_len) == -1 &&
            errno == ECONNREFUSED) {
            unlink(un->sun_path);
        }
        close(fd);
    }
}

int
endpoint_listen(const struct endpoint *e, char *err, size_t err_len)
{
    int on = 1, family = e->addr.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (family == AF_UNIX) {
        remove_stale(e);
    }
    if (fd == -1 ||
        (family != AF_UNIX &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) ||
        bind(fd, (const struct sockaddr *)&e->addr, e->addr_len) != 0 ||
        listen(fd, BACKLOG) != 0) {
        return fail(fd, e, "listen on", err, err_len);
    }
    return fd;
}

static void
hurry(int fd)
{
    int on = 1;
    /* A UNIX socket has no such option, and no need of it. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int
endpoint_connect(const struct endpoint *e, nsec_t until, char *err, size_t err_len)
{
    int fd = socket(e->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd == -1) {
        return fail(fd, e, "connect to", err, err_len);
    }
    if (connect(fd, (const struct sockaddr *)&e->addr, e->addr_len) != 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        nsec_t now = clock_now();
        int error = errno;
        socklen_t len = sizeof error;
        if (error == EINPROGRESS && until > now &&
            poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1) > 0) {
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
        }
        errno = error == EINPROGRESS ? ETIMEDOUT : error;
        if (error != 0) {
            return fail(fd, e, "connect to", err, err_len);
        }
    }
    hurry(fd);
    return fd;
}

int
endpoint_accept(int fd, char *err, size_t err_len)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    struct sockaddr_storage addr;
    socklen_t addr_len = sizeof addr;
    err[0] = '\0';
    int got =
        accept4(fd, (struct sockaddr *)&addr, &addr_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (got == -1) {
        return -1;
    }
    hurry(got);
    if (addr.ss_family == AF_UNIX &&
        (getsockopt(got, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
         (peer.uid != geteuid() && peer.uid != 0))) {
        snprintf(err, err_len, "a connection of another user was refused");
        close(got);
        return -1;
    }
    return got;
}
