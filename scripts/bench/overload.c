// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) 2026 the memcached-qos authors
//
// More requests than a server can do, from one CPU: copies of one request, a batch at a time on
// one of several connections, at random times whatever the replies do (open loop). A reply is
// either "SERVER_ERROR 307 busy" or as long as the first one was, so it costs next to nothing to
// take. Latency is that of the others, from the time when the batch was due. For scripts/bench-qos.
//
// usage: overload PORT CONNECTIONS BATCH RATE WARMUP SECONDS <REQUEST
// prints JSON: served, refused and unsent requests a second, p50, p95 and p99 in us, p99 of how
// late this client itself was with a batch, and the share of the time in which it had something
// to do.

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
struct histogram {
    unsigned long total, buckets[BUCKETS];
};

static struct histogram latency, lateness;
static unsigned long refused, unsent;
static int ep, connection_count, batch;
static double mean_gap, next_due, counted_from;

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
record(struct histogram *h, double seconds)
{
    double us = seconds * 1e6;
    double bucket = us > 1 ? log2(us) * BUCKETS_PER_OCTAVE : 0;
    h->total++;
    h->buckets[bucket < BUCKETS ? (int)bucket : BUCKETS - 1]++;
}

static double
quantile(const struct histogram *h, double q)
{
    double left = q * (double)h->total;
    int i = 0;
    while (i < BUCKETS - 1 && (left -= (double)h->buckets[i]) > 0) {
        i++;
    }
    return exp2((i + 1) / BUCKETS_PER_OCTAVE);
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
        record(&latency, at - due);
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

// Sends the batches that are due by now; were there any?
static int
send_due(double t)
{
    double first = next_due;
    for (; next_due <= t; next_due -= log(1 - drand48()) * mean_gap) {
        struct connection *c = &connections[lrand48() % connection_count];
        int fits = c->queued - c->answered + (unsigned)batch <= RING;
        for (int k = 0; fits && k < batch; k++) {
            c->due[c->queued++ % RING] = next_due;
        }
        if (next_due >= counted_from) {
            record(&lateness, t - next_due);
            unsent += fits ? 0 : (unsigned)batch;
        }
        push(c);
    }
    return next_due > first;
}

// Takes what has been answered; was there anything? Batches that become due meanwhile do not
// wait for all of it.
static int
take_ready(void)
{
    struct epoll_event ready[MAX_CONNECTIONS];
    int found = epoll_wait(ep, ready, connection_count, 0);
    for (int k = 0; k < found; k++) {
        struct connection *c = &connections[ready[k].data.u32];
        take(c);
        push(c);
        send_due(now());
    }
    return found > 0;
}

static void
open_all(int port)
{
    for (int i = 0; i < connection_count; i++) {
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
    connection_count = atoi(argv[2]);
    batch = atoi(argv[3]);
    mean_gap = batch / atof(argv[4]);
    ep = epoll_create1(0);
    request_len = fread(copies, 1, MAX_REQUEST, stdin);
    if (connection_count < 1 || connection_count > MAX_CONNECTIONS || batch < 1 ||
        request_len == 0 || ep < 0) {
        fail("overload");
    }
    for (int i = 1; i < COPIES; i++) {
        memcpy(copies + (size_t)i * request_len, copies, request_len);
    }
    open_all(atoi(argv[1]));
    srand48(1);
    double idle = 0;
    next_due = now();
    counted_from = next_due + atof(argv[5]);
    double end = counted_from + atof(argv[6]);
    for (double t = next_due; t < end;) {
        int had_work = send_due(t);
        had_work |= take_ready();
        double then = now();
        idle += !had_work && t >= counted_from ? then - t : 0;
        t = then;
    }
    double seconds = end - counted_from;
    printf("{\"served\": %.0f, \"refused\": %.0f, \"unsent\": %.0f, \"p50\": %.0f, "
           "\"p95\": %.0f, \"p99\": %.0f, \"late\": %.0f, \"busy\": %.3f}\n",
           (double)latency.total / seconds, (double)refused / seconds,
           (double)unsent / seconds, quantile(&latency, 0.5), quantile(&latency, 0.95),
           quantile(&latency, 0.99), quantile(&lateness, 0.99), 1 - idle / seconds);
    return 0;
}
