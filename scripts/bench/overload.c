// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// More requests than a server can do, from one CPU: copies of one request, a batch at a time on
// one of several connections, at random times whatever the replies do (open loop). A reply is
// either "SERVER_ERROR 307 busy" or as long as the first one was, so it costs next to nothing to
// take. Latency is that of the others, from the time when the batch was due. For scripts/bench-qos.
//
// usage: overload PORT CONNECTIONS BATCH RATE WARMUP SECONDS <REQUEST
// prints JSON: served, refused and unsent requests a second, p50, p95 and p99 in us, and the
// share of the time in which this client had something to do.

#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "client.h"

enum {
    MAX_REQUEST = 8192,
    MAX_CONNECTIONS = 1024,
    COPIES = 64,
    RING = 8192, // requests on their way on a connection
    BUCKETS = 4096,
    QUIET_MS = 200,
};
#define REFUSED "SERVER_ERROR 307 busy\r\n"
#define BUCKETS_PER_OCTAVE 64.0

struct connection {
    int fd;
    unsigned long queued, sent, answered; // requests
    size_t part;                          // bytes of the next request that have gone
    size_t missing;                       // bytes of the reply at the head
    double due[RING];
};

static char copies[COPIES * MAX_REQUEST];
static char sink[1 << 18];
static size_t request_len, reply_len;
static struct connection connections[MAX_CONNECTIONS];
static unsigned long histogram[BUCKETS];
static unsigned long served, refused, unsent;
static double counted_from;

static void
learn(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (send(fd, copies, request_len, MSG_NOSIGNAL) != (ssize_t)request_len) {
        fail("send");
    }
    while (poll(&p, 1, QUIET_MS) > 0) {
        ssize_t n = recv(fd, sink, sizeof sink, 0);
        if (n <= 0) {
            fail("recv");
        }
        reply_len += (size_t)n;
    }
}

// Sends what is queued, as far as the socket takes it.
static void
push(struct connection *c)
{
    while (c->sent < c->queued) {
        unsigned long n = c->queued - c->sent < COPIES ? c->queued - c->sent : COPIES;
        ssize_t went = send(c->fd, copies + c->part, n * request_len - c->part,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (went < 0) {
            if (errno == EAGAIN) {
                return;
            }
            fail("send");
        }
        c->part += (size_t)went;
        c->sent += c->part / request_len;
        c->part %= request_len;
    }
}

static void
count(const struct connection *c, int is_refused, double at)
{
    double due = c->due[c->answered % RING];
    if (due < counted_from) {
        return;
    }
    refused += is_refused != 0;
    if (!is_refused) {
        double us = (at - due) * 1e6;
        double bucket = us > 1 ? log2(us) * BUCKETS_PER_OCTAVE : 0;
        served++;
        histogram[bucket < BUCKETS ? (int)bucket : BUCKETS - 1]++;
    }
}

static void
take(struct connection *c)
{
    ssize_t n = recv(c->fd, sink, sizeof sink, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        fail("recv");
    }
    double at = now();
    for (const char *p = sink; n > 0;) {
        static int is_refused[MAX_CONNECTIONS];
        int *its = &is_refused[c - connections];
        if (c->missing == 0) {
            *its = *p == 'S';
            c->missing = *its ? sizeof REFUSED - 1 : reply_len;
        }
        size_t part = (size_t)n < c->missing ? (size_t)n : c->missing;
        p += part;
        n -= (ssize_t)part;
        c->missing -= part;
        if (c->missing == 0) {
            count(c, *its, at);
            c->answered++;
        }
    }
}

static double
quantile(double q)
{
    double left = q * (double)served;
    int i = 0;
    while (i < BUCKETS - 1 && (left -= (double)histogram[i]) > 0) {
        i++;
    }
    return exp2((i + 1) / BUCKETS_PER_OCTAVE);
}

static void
open_all(int ep, int n, int port)
{
    for (int i = 0; i < n; i++) {
        struct epoll_event want = {.events = EPOLLIN, .data.u32 = (unsigned)i};
        connections[i].fd = connect_to(port);
        if (i == 0) {
            learn(connections[0].fd);
        }
        if (epoll_ctl(ep, EPOLL_CTL_ADD, connections[i].fd, &want) != 0) {
            fail("epoll_ctl");
        }
    }
}

int
main(int argc, char **argv)
{
    if (argc != 7) {
        fprintf(stderr,
                "usage: overload PORT CONNECTIONS BATCH RATE WARMUP SECONDS <REQUEST\n");
        return 2;
    }
    int n = atoi(argv[2]), batch = atoi(argv[3]);
    double mean = batch / atof(argv[4]);
    int ep = epoll_create1(0);
    request_len = fread(copies, 1, MAX_REQUEST, stdin);
    if (n < 1 || n > MAX_CONNECTIONS || batch < 1 || request_len == 0 || ep < 0) {
        fail("overload");
    }
    for (int i = 1; i < COPIES; i++) {
        memcpy(copies + (size_t)i * request_len, copies, request_len);
    }
    open_all(ep, n, atoi(argv[1]));
    srand48(1);
    double begin = now(), due = begin, idle = 0;
    counted_from = begin + atof(argv[5]);
    double end = counted_from + atof(argv[6]);
    for (double t = begin; t < end;) {
        int had_work = 0;
        for (; due <= t; due -= log(1 - drand48()) * mean) {
            struct connection *c = &connections[lrand48() % n];
            int fits = c->queued - c->answered + (unsigned)batch <= RING;
            for (int k = 0; fits && k < batch; k++) {
                c->due[c->queued++ % RING] = due;
            }
            unsent += !fits && due >= counted_from ? (unsigned)batch : 0;
            push(c);
            had_work = 1;
        }
        struct epoll_event ready[MAX_CONNECTIONS];
        int found = epoll_wait(ep, ready, n, 0);
        for (int k = 0; k < found; k++) {
            take(&connections[ready[k].data.u32]);
            push(&connections[ready[k].data.u32]);
        }
        double then = now();
        idle += !had_work && found <= 0 && t >= counted_from ? then - t : 0;
        t = then;
    }
    double seconds = end - counted_from;
    printf("{\"served\": %.0f, \"refused\": %.0f, \"unsent\": %.0f, \"p50\": %.0f, "
           "\"p95\": %.0f, \"p99\": %.0f, \"busy\": %.3f}\n",
           (double)served / seconds, (double)refused / seconds, (double)unsent / seconds,
           quantile(0.5), quantile(0.95), quantile(0.99), 1 - idle / seconds);
    return 0;
}
