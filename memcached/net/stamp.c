/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/stamp.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/must.h"

static nsec_t
ns_of(const struct timespec *t)
{
    return (nsec_t)t->tv_sec * NSEC_PER_SEC + (nsec_t)t->tv_nsec;
}

/* The kernel's stamp; 0: none. The first packets after stamping was turned on have none, and
 * those of UNIX sockets never. */
static nsec_t
stamp_of(struct msghdr *msg)
{
    struct timespec at;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS &&
            c->cmsg_len >= CMSG_LEN(sizeof at)) {
            memcpy(&at, CMSG_DATA(c), sizeof at);
            return ns_of(&at);
        }
    }
    return 0;
}

ssize_t
stamp_recv(int fd, void *to, size_t room, struct sojourn_times *times)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(struct timespec)) + 64];
    } control;
    struct iovec iov = {.iov_base = to, .iov_len = room};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = sizeof control};
    struct timespec wall;
    must(clock_gettime(CLOCK_REALTIME, &wall) == 0);
    times->read_wall = ns_of(&wall);
    times->read_mono = clock_now();
    ssize_t n = recvmsg(fd, &msg, 0);
    times->rx_wall = n > 0 ? stamp_of(&msg) : 0;
    return n;
}
