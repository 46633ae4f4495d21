/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * recv, send, sendmsg and epoll_wait as libc has them, but for cancellation: with several threads
 * libc opens and closes a cancellation point around each, which is two locked instructions and some
 * eighty others, and no thread is ever cancelled here. Sanitizers must see the calls that they know. And
 * a short form of getsockopt.
 */
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYS_IS_LIBC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||               \
    __has_feature(memory_sanitizer)
#define SYS_IS_LIBC 1
#endif
#endif

static inline ssize_t
sys_recv(int fd, void *to, size_t bytes, int flags)
{
#ifdef SYS_IS_LIBC
    return recv(fd, to, bytes, flags);
#else
    return syscall(SYS_recvfrom, fd, to, bytes, flags, NULL, NULL);
#endif
}

static inline ssize_t
sys_send(int fd, const void *from, size_t bytes, int flags)
{
#ifdef SYS_IS_LIBC
    return send(fd, from, bytes, flags);
#else
    return syscall(SYS_sendto, fd, from, bytes, flags, NULL, 0);
#endif
}

static inline ssize_t
sys_sendmsg(int fd, const struct msghdr *msg, int flags)
{
#ifdef SYS_IS_LIBC
    return sendmsg(fd, msg, flags);
#else
    return syscall(SYS_sendmsg, fd, msg, flags);
#endif
}

/* A number that getsockopt tells, such as SO_TYPE; -1: it does not. */
static inline int
sys_option(int fd, int option)
{
    int value;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

/* timeout: milliseconds; -1: none */
static inline int
sys_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
#ifdef SYS_IS_LIBC
    return epoll_wait(fd, events, most, timeout);
#else
    return (int)syscall(SYS_epoll_pwait, fd, events, most, timeout, NULL, 0);
#endif
}
