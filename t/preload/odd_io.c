/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Preloaded into the server, makes reading and writing as hard as a kernel may: few bytes at a
 * time, EINTR again and again, and an error of accept. $ODD_IO names a file that holds a struct
 * control, which the test writes while the server runs.
 *
 * A short read means an empty socket and a short write a full one, epoll(7) says: whoever waits
 * for an edge gets one when a call was cut short here.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "preload.h"

struct control {
    _Atomic int64_t most_bytes;      /* of one recv, send or sendmsg; 0: no limit */
    _Atomic int64_t interrupts;      /* one call in so many ends in EINTR; 0: none */
    _Atomic int64_t accept_errno;    /* 0: accept4 works */
    _Atomic int64_t send_errno;      /* 0: sending works */
    _Atomic int64_t calls, injected; /* so far */
};

#define FDS_MAX 4096
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* What epoll was told of a descriptor. */
struct watched {
    int epoll;
    struct epoll_event event;
};

static struct control *control;
static struct watched watched[FDS_MAX];

static ssize_t (*real_recv)(int, void *, size_t, int);
static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static ssize_t (*real_read)(int, void *, size_t);
static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_accept4)(int, struct sockaddr *, socklen_t *, int);
static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static int (*real_epoll_ctl)(int, int, int, struct epoll_event *);
static int (*real_recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);
static int (*real_sendmmsg)(int, struct mmsghdr *, unsigned, int);

__attribute__((constructor)) static void
begin(void)
{
    control = map_control("ODD_IO", sizeof *control, mmap);
}

static int
fails_with(int64_t error)
{
    if (error == 0) {
        return 0;
    }
    atomic_fetch_add(&control->injected, 1);
    errno = (int)error;
    return 1;
}

/* Whether this call is one that a signal interrupts. */
static int
is_interrupted(void)
{
    if (control == NULL) {
        return 0;
    }
    /* Spread: the same call of a loop is not the one that is interrupted each time. */
    uint64_t number = (uint64_t)atomic_fetch_add(&control->calls, 1) * SPREAD >> 32;
    uint64_t one_in = (uint64_t)control->interrupts;
    return one_in != 0 && number % one_in == 0 && fails_with(EINTR);
}

static int
is_short(size_t bytes)
{
    int64_t most = control != NULL ? control->most_bytes : 0;
    return most > 0 && bytes > (size_t)most;
}

static size_t
at_most(size_t bytes)
{
    return is_short(bytes) ? (size_t)control->most_bytes : bytes;
}

static int
is_a_clients(int fd)
{
    return fd < FDS_MAX && watched[fd].epoll != 0;
}

/* Has the kernel look again, and raise the edge. */
static void
raise_edge(int fd)
{
    FIND(epoll_ctl);
    if (is_a_clients(fd)) {
        real_epoll_ctl(watched[fd].epoll, EPOLL_CTL_MOD, fd, &watched[fd].event);
    }
}

static int
is_refused(int fd)
{
    int64_t error = control != NULL ? control->send_errno : 0;
    if (!fails_with(error)) {
        return 0;
    }
    if (error == EAGAIN) {
        raise_edge(fd);
    }
    errno = (int)error;
    return 1;
}

int
epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
    FIND(epoll_ctl);
    int rc = real_epoll_ctl(epoll, what, fd, event);
    if (rc == 0 && fd < FDS_MAX) {
        watched[fd] = what == EPOLL_CTL_DEL ? (struct watched){.epoll = 0}
                                            : (struct watched){epoll, *event};
    }
    return rc;
}

static ssize_t
send_part(int fd, const void *from, size_t bytes, int flags)
{
    FIND(send);
    ssize_t n = real_send(fd, from, at_most(bytes), flags);
    if (n > 0 && is_short(bytes)) {
        raise_edge(fd);
    }
    return n;
}

ssize_t
recv(int fd, void *to, size_t bytes, int flags)
{
    FIND(recv);
    ssize_t n = is_interrupted() ? -1 : real_recv(fd, to, at_most(bytes), flags);
    if (n > 0 && is_short(bytes)) {
        raise_edge(fd);
    }
    return n;
}

ssize_t
send(int fd, const void *from, size_t bytes, int flags)
{
    if (is_a_clients(fd) && (is_interrupted() || is_refused(fd))) {
        return -1;
    }
    return send_part(fd, from, bytes, flags);
}

ssize_t
sendmsg(int fd, const struct msghdr *msg, int flags)
{
    FIND(sendmsg);
    if (is_a_clients(fd) && (is_interrupted() || is_refused(fd))) {
        return -1;
    }
    if (!is_short(SIZE_MAX) || msg->msg_iovlen == 0) {
        return real_sendmsg(fd, msg, flags);
    }
    size_t first = 0;
    while (first + 1 < msg->msg_iovlen && msg->msg_iov[first].iov_len == 0) {
        first++;
    }
    const struct iovec *run = &msg->msg_iov[first];
    ssize_t n = send_part(fd, run->iov_base, run->iov_len, flags);
    if (n > 0) {
        raise_edge(fd); /* the other runs are left */
    }
    return n;
}

ssize_t
read(int fd, void *to, size_t bytes)
{
    FIND(read);
    return is_interrupted() ? -1 : real_read(fd, to, bytes);
}

ssize_t
write(int fd, const void *from, size_t bytes)
{
    FIND(write);
    /* Of a wake-up; libevent's signal handler writes a byte to itself and does not try again. */
    int is_wakeup = bytes == sizeof(uint64_t);
    return is_wakeup && is_interrupted() ? -1 : real_write(fd, from, bytes);
}

int
accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    FIND(accept4);
    if (is_interrupted() || (control != NULL && fails_with(control->accept_errno))) {
        return -1;
    }
    return real_accept4(fd, addr, len, flags);
}

int
epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    FIND(epoll_wait);
    return is_interrupted() ? -1 : real_epoll_wait(fd, events, most, timeout);
}

int
recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
         struct timespec *timeout)
{
    FIND(recvmmsg);
    return is_interrupted() ? -1 : real_recvmmsg(fd, messages, count, flags, timeout);
}

int
sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    FIND(sendmmsg);
    return is_interrupted() ? -1 : real_sendmmsg(fd, messages, count, flags);
}

/* What is called without libc's cancellation points. */
long
syscall(long number, ...)
{
    static long (*real_syscall)(long, ...);
    FIND(syscall);
    va_list list;
    long a[6];
    va_start(list, number);
    for (unsigned i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    switch (number) {
    case SYS_recvfrom:
        return recv((int)a[0], (void *)a[1], (size_t)a[2], (int)a[3]);
    case SYS_sendto:
        return send((int)a[0], (const void *)a[1], (size_t)a[2], (int)a[3]);
    case SYS_epoll_pwait:
        return epoll_wait((int)a[0], (struct epoll_event *)a[1], (int)a[2], (int)a[3]);
    default:
        return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}
