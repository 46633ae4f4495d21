// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// Sends one block of requests over and over on several connections, each time when the reply
// to the one before is complete, and counts. The block is standard input; its reply is learnt
// from the first exchange and must have the same length ever after, so what the server says
// costs the client next to nothing. For scripts/bench-*.
//
// usage: replay PORT CONNECTIONS SECONDS <BLOCK; prints "BLOCKS BYTES-OF-A-REPLY".

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client.h"

enum { MAX_BLOCK = 1 << 20, MAX_CONNECTIONS = 1024, QUIET_MS = 200 };

static char block[MAX_BLOCK];
static char sink[MAX_BLOCK];
static size_t block_len;
static int fds[MAX_CONNECTIONS];
static size_t missing[MAX_CONNECTIONS];

static void
send_block(int fd)
{
    size_t done = 0;
    while (done < block_len) {
        ssize_t n = send(fd, block + done, block_len - done, MSG_NOSIGNAL);
        if (n < 0) {
            fail("send");
        }
        done += (size_t)n;
    }
}

// The length of the reply: what comes until nothing comes for a while.
static size_t
learn(int fd)
{
    size_t total = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    send_block(fd);
    while (poll(&p, 1, QUIET_MS) > 0) {
        ssize_t n = recv(fd, sink, sizeof sink, 0);
        if (n <= 0) {
            fail("recv");
        }
        total += (size_t)n;
    }
    return total;
}

// One read; true when the reply is complete.
static int
take(int i)
{
    ssize_t n = recv(fds[i], sink, sizeof sink, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        fail("recv");
    }
    if (n > 0 && (size_t)n > missing[i]) {
        fprintf(stderr, "replay: a longer reply than at first\n");
        exit(1);
    }
    missing[i] -= n > 0 ? (size_t)n : 0;
    return missing[i] == 0;
}

int
main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: replay PORT CONNECTIONS SECONDS <BLOCK\n");
        return 2;
    }
    int n = atoi(argv[2]);
    block_len = fread(block, 1, sizeof block, stdin);
    int ep = epoll_create1(0);
    if (n < 1 || n > MAX_CONNECTIONS || block_len == 0 || ep < 0) {
        fail("replay");
    }
    size_t reply = 0;
    for (int i = 0; i < n; i++) {
        struct epoll_event want = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        fds[i] = connect_to(atoi(argv[1]));
        reply = i == 0 ? learn(fds[0]) : reply;
        if (reply == 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &want) != 0) {
            fail("no reply");
        }
    }
    for (int i = 0; i < n; i++) {
        missing[i] = reply;
        send_block(fds[i]);
    }
    unsigned long blocks = 0;
    double end = now() + atof(argv[3]);
    while (now() < end) {
        struct epoll_event ready[MAX_CONNECTIONS];
        int count = epoll_wait(ep, ready, n, 100);
        for (int k = 0; k < count; k++) {
            int i = (int)ready[k].data.u32;
            if (take(i)) {
                blocks++;
                missing[i] = reply;
                send_block(fds[i]);
            }
        }
    }
    printf("%lu %zu\n", blocks, reply);
    return 0;
}
