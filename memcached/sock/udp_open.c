/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/udp_open.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sock/addr.h"

#define BUFFER_BYTES (256 << 20) /* asked of the kernel, which gives what it allows */

static void
set_options(int fd)
{
    int one = 1;
    int bytes = BUFFER_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one); /* for sock/stamp.h */
}

static int
open_socket(const struct sockaddr *addr, socklen_t len, bool is_member)
{
    int fd = socket(addr->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int one = 1;
    set_options(fd);
    if (addr->sa_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    }
    bool is_bound =
        (!is_member || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) == 0) &&
        bind(fd, addr, len) == 0;
    if (!is_bound) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The first worker's socket is bound like any other, so that an address in use is noticed;
 * from then on it lets the others join. */
static int
open_member(int first, bool is_shared)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    int one = 1;
    if (is_shared) {
        return fcntl(first, F_DUPFD_CLOEXEC, 0);
    }
    must(getsockname(first, (struct sockaddr *)&addr, &len) == 0);
    if (setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) {
        return -1;
    }
    return open_socket((struct sockaddr *)&addr, len, true);
}

/* Room for one more address. */
static bool
make_room(struct udp_sockets *s)
{
    unsigned addresses = s->addresses + 1;
    int *fds = realloc(s->fds, addresses * s->workers * sizeof *fds);
    if (fds == NULL) {
        return false;
    }
    s->fds = fds;
    int *classes = realloc(s->declared, addresses * sizeof *classes);
    if (classes == NULL) {
        return false;
    }
    s->declared = classes;
    return true;
}

/* Takes `first` over and opens the others beside it. 0, or the errno. */
static int
add_address(struct udp_sockets *s, int first, int declared, bool is_shared)
{
    if (!make_room(s)) {
        close(first);
        return ENOMEM;
    }
    s->declared[s->addresses] = declared;
    int *mine = s->fds + (size_t)s->addresses * s->workers;
    mine[0] = first;
    for (unsigned i = 1; i < s->workers; i++) {
        mine[i] = open_member(first, is_shared);
        if (mine[i] < 0) {
            int error = errno;
            while (i > 0) {
                close(mine[--i]);
            }
            return error;
        }
    }
    s->addresses++;
    return 0;
}

int
udp_bind(struct udp_sockets *s, const struct addrinfo *ai, int declared)
{
    int fd = open_socket(ai->ai_addr, ai->ai_addrlen, false);
    return fd < 0 ? errno : add_address(s, fd, declared, s->conf.is_shared);
}

/* Only the user that opened a socket may let others join, so its workers share it. */
int
udp_adopt(struct udp_sockets *s, int fd, int declared)
{
    set_options(fd);
    return add_address(s, fd, declared, true);
}

void
udp_describe(const struct udp_sockets *s, unsigned address, char *dst, size_t dst_len)
{
    addr_format_own("udp", s->fds[address * s->workers], dst, dst_len);
}

void
udp_close(struct udp_sockets *s)
{
    for (unsigned i = 0; i < s->addresses * s->workers; i++) {
        close(s->fds[i]);
    }
    free(s->fds);
    free(s->declared);
    s->fds = NULL;
    s->declared = NULL;
    s->addresses = 0;
}
