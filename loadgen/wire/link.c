/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loadgen/wire/ltls.h"

static enum link_io
open_failed(struct link *l, const char **why)
{
    /* Only a UNIX socket says so; TCP lets the handshake wait. */
    enum link_io io = errno == EAGAIN ? LINK_AGAIN : LINK_LOST;
    *why = strerror(errno);
    link_close(l);
    return io;
}

/* A port is free for the next connection when this one is closed: no TIME_WAIT. */
static bool
bind_port(int fd, int family, uint16_t port)
{
    static const struct linger at_once = {1, 0};
    int on = 1;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    const void *addr = family == AF_INET6 ? (const void *)&v6 : &v4;
    socklen_t len = family == AF_INET6 ? sizeof v6 : sizeof v4;
    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 &&
           bind(fd, addr, len) == 0;
}

static bool
prepare(int fd, int family, int type, const struct link_conf *conf)
{
    int on = 1;
    if (family == AF_UNIX) {
        return true;
    }
    if (conf->with_nodelay && type == SOCK_STREAM &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        return false;
    }
    return conf->src_port == 0 || bind_port(fd, family, conf->src_port);
}

enum link_io
link_open(struct link *l, const struct link_conf *conf, const char **why)
{
    const struct target *t = conf->target;
    int family = t->addr.ss_family;
    int type = t->transport == TRANSPORT_UDP ? SOCK_DGRAM : SOCK_STREAM;
    must(l->fd == -1);
    *l = (struct link){.fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                       .is_datagram = type == SOCK_DGRAM};
    if (l->fd == -1) {
        return open_failed(l, why);
    }
    if (!prepare(l->fd, family, type, conf)) {
        return open_failed(l, why);
    }
    l->wants_write = true;
    if (connect(l->fd, (const struct sockaddr *)&t->addr, t->addr_len) != 0 &&
        errno != EINPROGRESS) {
        return open_failed(l, why);
    }
    return LINK_OK;
}

/* The three-way handshake, when it is over. */
static enum link_io
await_connected(struct link *l, const char **why)
{
    struct pollfd p = {l->fd, POLLOUT, 0};
    int error = 0;
    socklen_t len = sizeof error;
    if (poll(&p, 1, 0) == 0) {
        return LINK_AGAIN;
    }
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    if (error != 0) {
        *why = strerror(error);
        return LINK_LOST;
    }
    l->is_connected = true;
    return LINK_OK;
}

enum link_io
link_go_on(struct link *l, const struct link_conf *conf, const char **why)
{
    enum link_io io = l->is_connected ? LINK_OK : await_connected(l, why);
    if (io != LINK_OK || conf->target->transport != TRANSPORT_TLS) {
        return io;
    }
    if (l->tls == NULL) {
        l->tls = ltls_ops.begin(conf->tls, l->fd, conf->target->host);
        if (l->tls == NULL) {
            *why = "no memory for TLS";
            return LINK_LOST;
        }
    }
    return ltls_ops.shake_hands(l->tls, &l->wants_write, why);
}

void
link_close(struct link *l)
{
    if (l->tls != NULL) {
        ltls_ops.end(l->tls);
    }
    if (l->fd != -1) {
        close(l->fd);
    }
    *l = (struct link){.fd = -1};
}

/* The C library's send and recv are points of cancellation, for which each takes two locked
 * instructions; no thread here is ever cancelled. */
enum link_io
link_send(struct link *l, const char *bytes, size_t len, size_t *sent)
{
    *sent = 0;
    if (l->tls != NULL) {
        return ltls_ops.send(l->tls, bytes, len, sent, &l->wants_write);
    }
    ssize_t n;
    do {
        n = syscall(SYS_sendto, l->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        l->wants_write = errno == EAGAIN;
        return errno == EAGAIN ? LINK_AGAIN : LINK_LOST;
    }
    *sent = (size_t)n;
    return LINK_OK;
}

enum link_io
link_receive(struct link *l, char *to, size_t room, size_t *len, bool *has_more)
{
    *len = 0;
    *has_more = false;
    if (l->tls != NULL) {
        return ltls_ops.receive(l->tls, to, room, len, has_more);
    }
    ssize_t n;
    do {
        n = syscall(SYS_recvfrom, l->fd, to, room, MSG_DONTWAIT, NULL, NULL);
    } while (n < 0 && errno == EINTR);
    if (n > 0 || (n == 0 && l->is_datagram)) {
        *len = (size_t)n;
        return LINK_OK;
    }
    return n < 0 && errno == EAGAIN ? LINK_AGAIN : LINK_LOST;
}
