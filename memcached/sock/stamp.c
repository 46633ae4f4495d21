/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/stamp.h"

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

void
stamp_prepare(struct stamp_room *room, struct msghdr *msg, struct sojourn_times *times)
{
    struct timespec wall;
    msg->msg_control = room;
    msg->msg_controllen = room != NULL ? sizeof *room : 0;
    must(clock_gettime(CLOCK_REALTIME, &wall) == 0);
    times->read_wall = ns_of(&wall);
    times->read_mono = clock_now();
}

void
stamp_take(struct msghdr *msg, struct sojourn_times *times)
{
    times->rx_wall = stamp_of(msg);
}

static ssize_t
receive(int fd, bool is_stamped, void *to, size_t len, int flags,
        struct sojourn_times *times)
{
    struct stamp_room room;
    struct iovec iov = {.iov_base = to, .iov_len = len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    stamp_prepare(is_stamped ? &room : NULL, &msg, times);
    ssize_t n = recvmsg(fd, &msg, flags);
    times->rx_wall = n > 0 ? stamp_of(&msg) : 0;
    return n;
}

ssize_t
stamp_recv(int fd, bool is_stamped, void *to, size_t room, struct sojourn_times *times)
{
    return receive(fd, is_stamped, to, room, 0, times);
}

void
stamp_peek(int fd, bool is_stamped, struct sojourn_times *times)
{
    char byte;
    (void)receive(fd, is_stamped, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT, times);
}
