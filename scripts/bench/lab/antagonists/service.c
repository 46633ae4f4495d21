/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A service with an event loop as memcached's whose requests take long: a line that begins with
 * "get" uses CPU time drawn from an exponential law and is answered by a miss, in the order of arrival.
 * `service PORT MEAN_US SECONDS`; work: requests. Prints drawn=, the seconds of CPU time that they were to use.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <math.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "antagonist.h"

enum { CONNECTIONS_MAX = 1024, INPUT_BYTES = 4096, BATCH = 64, WAIT_MS = 100 };

struct client {
    int fd;
    size_t filled;
    char input[INPUT_BYTES];
};

static struct client *clients[CONNECTIONS_MAX];
static double mean_ns;
static double drawn_ns;
static uint64_t served;

static void
serve(int fd)
{
    double wanted = -mean_ns * log(1.0 - drand48());
    int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
    while ((double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - start) < wanted) {
    }
    drawn_ns += wanted;
    served++;
    static const char miss[] = "END\r\n";
    if (send(fd, miss, sizeof miss - 1, MSG_NOSIGNAL) < 0) {
        shutdown(fd, SHUT_RDWR); /* the next read sees its end */
    }
}

/* False when the connection is over. */
static bool
read_lines(struct client *client)
{
    ssize_t got =
        recv(client->fd, client->input + client->filled, INPUT_BYTES - client->filled, 0);
    if (got <= 0) {
        return false;
    }
    client->filled += (size_t)got;
    char *line = client->input;
    char *end;
    while ((end = memchr(line, '\n', client->filled - (size_t)(line - client->input))) !=
           NULL) {
        if (strncmp(line, "get", 3) == 0) {
            serve(client->fd);
        }
        line = end + 1;
    }
    client->filled -= (size_t)(line - client->input);
    memmove(client->input, line, client->filled);
    return client->filled < INPUT_BYTES;
}

static void
add(int poll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (fd >= CONNECTIONS_MAX || epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("too many connections");
    }
}

static void
meet(int poll, int listener)
{
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) {
        return;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    add(poll, fd);
    clients[fd] = calloc(1, sizeof *clients[fd]);
    if (clients[fd] == NULL) {
        fail("service");
    }
    clients[fd]->fd = fd;
}

static int
listen_on(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        fail("listen");
    }
    return fd;
}

int
main(int argc, char **argv)
{
    mean_ns = argc == 4 ? atof(argv[2]) * 1e3 : 0;
    if (mean_ns <= 0) {
        usage("service PORT MEAN_US SECONDS");
    }
    int listener = listen_on(atoi(argv[1]));
    int poll = epoll_create1(0);
    add(poll, listener);
    srand48(1);
    begin(argv[3]);
    while (goes_on()) {
        struct epoll_event events[BATCH];
        int count = epoll_wait(poll, events, BATCH, WAIT_MS);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                meet(poll, listener);
            } else if (!read_lines(clients[fd])) {
                close(fd);
                free(clients[fd]);
                clients[fd] = NULL;
            }
        }
    }
    finish(served, "drawn=%.3f", drawn_ns / 1e9);
    return 0;
}
