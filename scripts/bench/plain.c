// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// The reference that scripts/bench-mcload compares mcload with: what one writes in an afternoon
// to load a memcached. A closed loop on epoll, one write and one read for each request: a
// connection keeps DEPTH gets on their way; a read takes at most one reply's bytes, and each
// reply that is complete is timed and followed by a get of another key. Like mcload it draws
// keys at random, knows for each reply the time its request was sent, checks that a reply ends
// as it should, and counts latencies in a histogram; it does nothing else.
//
// usage: plain PORT|PATH CONNECTIONS DEPTH RECORDS SECONDS
// prints {"requests": N, "seconds": S, "cpu": S, "p99_us": U}

#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client.h"

enum {
    MAX_CONNECTIONS = 1024,
    MAX_DEPTH = 256,
    MAX_REPLY = 65536,
    KEY_BYTES = 30,
    BUCKETS = 100000, // of a tenth of a microsecond
};

struct connection {
    int fd;
    size_t got; // of the reply being read
    unsigned head;
    double sent_at[MAX_DEPTH]; // ring, oldest at head
    char reply[MAX_REPLY];
};

static struct connection connections[MAX_CONNECTIONS];
static size_t reply_len; // all replies are of one length
static unsigned depth;
static uint64_t records, seed = 88172645463325252U;
static unsigned long requests, latencies[BUCKETS];

// Marsaglia, Xorshift RNGs (2003).
static uint64_t
draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void
send_get(struct connection *c, unsigned slot)
{
    char line[KEY_BYTES + 8];
    int len = snprintf(line, sizeof line, "get %030llu\r\n",
                       (unsigned long long)(draw() % records));
    c->sent_at[slot] = now();
    if (write(c->fd, line, (size_t)len) != len) {
        fail("write");
    }
}

// The first reply says how long replies are.
static void
learn(struct connection *c)
{
    send_get(c, 0);
    while (reply_len < 5 || memcmp(c->reply + reply_len - 5, "END\r\n", 5) != 0) {
        ssize_t n = read(c->fd, c->reply + reply_len, sizeof c->reply - reply_len);
        if (n <= 0) {
            fail("read");
        }
        reply_len += (size_t)n;
    }
    if (reply_len == 5) {
        fprintf(stderr, "plain: the server has no such keys\n");
        exit(1);
    }
}

static void
take(struct connection *c)
{
    ssize_t n = read(c->fd, c->reply + c->got, reply_len - c->got);
    if (n <= 0) {
        fail("read");
    }
    c->got += (size_t)n;
    if (c->got < reply_len) {
        return;
    }
    if (memcmp(c->reply + reply_len - 5, "END\r\n", 5) != 0) {
        fprintf(stderr, "plain: a reply of another length\n");
        exit(1);
    }
    double us = (now() - c->sent_at[c->head]) * 1e6;
    latencies[us * 10 < BUCKETS ? (size_t)(us * 10) : BUCKETS - 1]++;
    requests++;
    c->got = 0;
    send_get(c, c->head);
    c->head = (c->head + 1) % depth;
}

static double
p99(void)
{
    unsigned long below = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        below += latencies[i];
        if ((double)below >= 0.99 * (double)requests) {
            return (double)(i + 1) / 10;
        }
    }
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: plain PORT|PATH CONNECTIONS DEPTH RECORDS SECONDS\n");
        return 2;
    }
    int count = atoi(argv[2]);
    depth = (unsigned)atoi(argv[3]);
    records = strtoull(argv[4], NULL, 10);
    int ep = epoll_create1(0);
    if (count < 1 || count > MAX_CONNECTIONS || depth < 1 || depth > MAX_DEPTH ||
        records == 0 || ep < 0) {
        fail("plain");
    }
    for (int i = 0; i < count; i++) {
        struct epoll_event want = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        connections[i].fd =
            argv[1][0] == '/' ? connect_unix(argv[1]) : connect_to(atoi(argv[1]));
        if (i == 0) {
            learn(&connections[0]);
        }
        if (epoll_ctl(ep, EPOLL_CTL_ADD, connections[i].fd, &want) != 0) {
            fail("epoll_ctl");
        }
    }
    double begin = now(), cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < count; i++) {
        for (unsigned slot = 0; slot < depth; slot++) {
            send_get(&connections[i], slot);
        }
    }
    double end = begin + atof(argv[5]);
    while (now() < end) {
        struct epoll_event ready[MAX_CONNECTIONS];
        int n = epoll_wait(ep, ready, count, 100);
        for (int k = 0; k < n; k++) {
            take(&connections[ready[k].data.u32]);
        }
    }
    printf("{\"requests\": %lu, \"seconds\": %.6f, \"cpu\": %.6f, \"p99_us\": %.1f}\n",
           requests, now() - begin, seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu, p99());
    return 0;
}
