// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// abuse PORT CONNECTIONS SECONDS CHUNK TIMES READ END < BYTES: sends the bytes on each connection
// over and over, as fast as the server takes them, CHUNK in a write (0: as many as fit), TIMES in
// all (0: without end). READ: "all" replies, "some" (1 KiB a millisecond), or "none". END, behind
// the last time: "stay", or "again" for a new connection. A PORT with "udp:" before it takes the
// bytes as one datagram. A connection that the server closes is opened again.
//
// It prints bytes sent and received, connections made, seconds, and the share of a CPU it took.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client.h"

#define BLOCK_MOST (64u << 20)
#define DROP_BYTES (256u << 10)
#define SOME_BYTES 1024
#define REPLIES_IN_A_ROW 8
#define IDLE_NS 1000000

enum reads { READ_ALL, READ_SOME, READ_NONE };

struct client {
    int fd;
    size_t sent;    // of the block
    unsigned times; // that it has been sent
};

static struct {
    int port;
    bool is_udp, begins_again;
    enum reads reads;
    char *block;
    size_t len, chunk;
    unsigned times;
    unsigned long long sent, received, connects;
} all;

static void
read_block(void)
{
    size_t room = 1 << 16;
    ssize_t n;
    all.block = malloc(room);
    while ((n = read(STDIN_FILENO, all.block + all.len, room - all.len)) > 0) {
        all.len += (size_t)n;
        if (all.len == room && room < BLOCK_MOST) {
            room *= 2;
            all.block = realloc(all.block, room);
        }
    }
    if (all.block == NULL || n < 0 || all.len == room) {
        fail("the bytes to send");
    }
}

static int
open_udp(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)all.port)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        fail("connect");
    }
    return fd;
}

static void
begin(struct client *c)
{
    *c = (struct client){.fd = all.is_udp ? open_udp() : connect_to(all.port)};
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
        fail("fcntl");
    }
    all.connects++;
}

// Without a time in which its port cannot be used again.
static void
begin_again(struct client *c)
{
    struct linger none = {.l_onoff = 1};
    (void)!setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    close(c->fd);
    begin(c);
}

// True: something went.
static bool
write_some(struct client *c)
{
    if (all.times != 0 && c->times == all.times) {
        return false;
    }
    size_t left = all.len - c->sent;
    size_t part = all.chunk != 0 && all.chunk < left ? all.chunk : left;
    ssize_t n = send(c->fd, all.block + c->sent, part, MSG_NOSIGNAL);
    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR && !all.is_udp) {
            begin_again(c); // the server has closed it
        }
        return false;
    }
    all.sent += (unsigned long long)n;
    c->sent += (size_t)n;
    if (c->sent == all.len) {
        c->sent = 0;
        c->times++;
    }
    return true;
}

// True: something came, or the server has closed the connection.
static bool
read_some(struct client *c, size_t most)
{
    static char drop[DROP_BYTES];
    ssize_t n = recv(c->fd, drop, most, 0);
    if (n > 0) {
        all.received += (unsigned long long)n;
        return true;
    }
    if (!all.is_udp && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
        begin_again(c);
        return true;
    }
    return false;
}

static bool
turn(struct client *c)
{
    bool has_done = write_some(c);
    if (all.reads == READ_ALL) {
        for (unsigned i = 0; i < REPLIES_IN_A_ROW && read_some(c, DROP_BYTES); i++) {
            has_done = true;
        }
    } else if (all.reads == READ_SOME) {
        (void)read_some(c, SOME_BYTES);
    }
    if (all.begins_again && c->times == all.times) {
        begin_again(c);
        has_done = true;
    }
    return has_done;
}

static void
rest(void)
{
    struct timespec pause = {.tv_nsec = IDLE_NS};
    nanosleep(&pause, NULL);
}

static void
get_options(char **argv)
{
    all.is_udp = strncmp(argv[1], "udp:", 4) == 0;
    all.port = atoi(argv[1] + (all.is_udp ? 4 : 0));
    all.chunk = (size_t)atol(argv[4]);
    all.times = (unsigned)atoi(argv[5]);
    all.reads = strcmp(argv[6], "all") == 0    ? READ_ALL
                : strcmp(argv[6], "some") == 0 ? READ_SOME
                                               : READ_NONE;
    all.begins_again = strcmp(argv[7], "again") == 0;
}

int
main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: abuse [udp:]PORT CONNECTIONS SECONDS CHUNK TIMES "
                        "all|some|none stay|again < BYTES\n");
        return 2;
    }
    get_options(argv);
    read_block();
    unsigned count = (unsigned)atoi(argv[2]);
    struct rlimit files = {.rlim_cur = count + 64, .rlim_max = count + 64};
    struct client *clients = calloc(count, sizeof *clients);
    double begun = now(), end = begun + atof(argv[3]);
    (void)!setrlimit(RLIMIT_NOFILE, &files); // connect() tells when that was not enough
    if (clients == NULL) {
        fail("memory");
    }
    for (unsigned i = 0; i < count; i++) {
        begin(&clients[i]);
    }
    while (now() < end) {
        bool has_done = false;
        for (unsigned i = 0; i < count && now() < end; i++) {
            has_done |= turn(&clients[i]);
        }
        if (!has_done || all.reads == READ_SOME) {
            rest();
        }
    }
    double took = now() - begun;
    printf("%llu %llu %llu %.3f %.3f\n", all.sent, all.received, all.connects, took,
           seconds_of(CLOCK_PROCESS_CPUTIME_ID) / took);
    return 0;
}
