/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * The floor under every get server on epoll and sockets: each line "get KEY" with a key of
 * 30 bytes is answered with one canned value of 200 bytes under that key. One epoll_wait per
 * batch, one recv and one send per readable connection, no parsing, no lookup. What a server
 * costs above this is its own.
 *
 *   cc -O2 -o floor floor.c && ./floor PORT|PATH      listens on 127.0.0.1 or a UNIX
 *   socket, one thread
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    IN_BYTES = 16384,
    KEY_BYTES = 30,
    KEY_IN_LINE = 4,  /* "get " */
    KEY_IN_REPLY = 6, /* "VALUE " */
    VALUE_BYTES = 200,
    REPLY_MAX = VALUE_BYTES + 64,
    LINES_MAX = 1024, /* more lines in one read than this stay unanswered */
    EVENTS_MAX = 512,
};

static char reply[REPLY_MAX];
static size_t reply_len;

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static void
make_reply(void)
{
    char value[VALUE_BYTES + 1];
    memset(value, 'x', VALUE_BYTES);
    value[VALUE_BYTES] = '\0';
    reply_len = (size_t)snprintf(reply, sizeof reply, "VALUE %030d 0 %d\r\n%s\r\nEND\r\n",
                                 0, VALUE_BYTES, value);
}

static int
listen_on(uint16_t port)
{
    int one = 1;
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(fd, 1024) != 0) {
        die("listen");
    }
    return fd;
}

static int
listen_unix(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) != 0 ||
        listen(fd, 1024) != 0) {
        die("listen");
    }
    return fd;
}

static void
watch(int ep, int fd)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) != 0) {
        die("epoll_ctl");
    }
}

static void
greet(int ep, int listener)
{
    int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    watch(ep, fd);
}

/* One read, one write. False: the peer is gone, or so slow that it may as well be. */
static bool
answer(int fd)
{
    static char in[IN_BYTES], out[LINES_MAX * REPLY_MAX];
    ssize_t got = recv(fd, in, sizeof in, 0);
    if (got <= 0) {
        return got < 0 && errno == EAGAIN;
    }
    size_t len = 0;
    const char *end = in + got;
    for (const char *p = in; len + reply_len <= sizeof out; p++) {
        const char *line = p;
        p = memchr(p, '\n', (size_t)(end - p));
        if (p == NULL) {
            break;
        }
        memcpy(out + len, reply, reply_len);
        if (p - line >= KEY_IN_LINE + KEY_BYTES) {
            memcpy(out + len + KEY_IN_REPLY, line + KEY_IN_LINE, KEY_BYTES);
        }
        len += reply_len;
    }
    return len == 0 || send(fd, out, len, MSG_NOSIGNAL) == (ssize_t)len;
}

int
main(int argc, char **argv)
{
    struct epoll_event events[EVENTS_MAX];
    if (argc != 2) {
        fprintf(stderr, "usage: floor PORT|PATH\n");
        return 2;
    }
    make_reply();
    int listener =
        argv[1][0] == '/' ? listen_unix(argv[1]) : listen_on((uint16_t)atoi(argv[1]));
    int ep = epoll_create1(EPOLL_CLOEXEC);
    if (ep < 0) {
        die("epoll_create1");
    }
    watch(ep, listener);
    for (;;) {
        int n = epoll_wait(ep, events, EVENTS_MAX, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                greet(ep, listener);
            } else if (!answer(fd)) {
                close(fd);
            }
        }
    }
}
