/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/swarm/endpoint.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fail.h"

#define BACKLOG 16
#define PORT_TEXT_MAX 16

bool
endpoint_resolve(struct target *t, const char *text, unsigned port, char *err,
                 size_t err_len)
{
    char standard[PORT_TEXT_MAX], place[TARGET_PLACE_MAX];
    snprintf(standard, sizeof standard, "%u", port);
    if (strlen(text) + PORT_TEXT_MAX >= sizeof t->name) {
        return fail_because(err, err_len, "address too long");
    }
    if (!target_resolve_at(t, text, standard, err, err_len)) {
        return false;
    }
    snprintf(t->name, sizeof t->name, "%.*s", TARGET_NAME_MAX - 1,
             target_place(t, place));
    return true;
}

static int
fail(int fd, const struct target *t, const char *what, char *err, size_t err_len)
{
    snprintf(err, err_len, "cannot %s %s: %s", what, t->name, strerror(errno));
    if (fd != -1) {
        close(fd);
    }
    return -1;
}

/* A socket file without a listener is in the way. */
static void
remove_stale(const struct target *t)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&t->addr;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd != -1) {
        if (connect(fd, (const struct sockaddr *)&t->addr, t->addr_len) == -1 &&
            errno == ECONNREFUSED) {
            unlink(un->sun_path);
        }
        close(fd);
    }
}

int
endpoint_listen(const struct target *t, char *err, size_t err_len)
{
    int on = 1, family = t->addr.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (family == AF_UNIX) {
        remove_stale(t);
    }
    if (fd == -1 ||
        (family != AF_UNIX &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) ||
        bind(fd, (const struct sockaddr *)&t->addr, t->addr_len) != 0 ||
        listen(fd, BACKLOG) != 0) {
        return fail(fd, t, "listen on", err, err_len);
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
endpoint_connect(const struct target *t, nsec_t until, char *err, size_t err_len)
{
    int fd = target_connect(t, until);
    if (fd == -1) {
        return fail(fd, t, "connect to", err, err_len);
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
