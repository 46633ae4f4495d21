/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * A client that takes all it can get and costs next to nothing itself, so that the server is
 * what limits both. It keeps DEPTH requests on their way on each connection. Requests are not
 * built: they lie ready, equally long, and large ones are sent from where they lie, without a
 * copy, through a pipe. Replies are not parsed: all are REPLY_BYTES long, and TCP discards them unread
 * (drop), or they are read into a large buffer, as other clients do it (read).
 *
 *   greedy PORT CONNECTIONS DEPTH WARMUP SECONDS REQUEST_BYTES REPLY_BYTES drop|read < requests
 *
 * Counts for SECONDS after WARMUP seconds, goes on for another second, and prints
 * "REQUESTS SECONDS CPU": requests answered, the time in which they were, the share of it
 * that this client spent on a CPU. One thread, 127.0.0.1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "client.h"

enum {
    PEERS_MAX = 1024,
    /* What one system call moves at most: a client at real-time priority on this CPU waits
     * for the call to end. */
    PIECE_BYTES = 65536,
    READ_BYTES = 1 << 20,
    SPLICE_BYTES = 16384, /* requests from this length on are sent without a copy */
    /* Memory in huge pages is fewer fragments to send. */
    SCRIPT_BYTES_MAX = 64 << 20,
    HUGE_PAGE_BYTES = 2 << 20,
    WAIT_MS = 100,
};

struct peer {
    int fd;
    int pipe[2];      /* of large requests */
    size_t in_pipe;   /* bytes in it, which come before those at `at` */
    size_t at;        /* in the requests */
    uint64_t owed;    /* bytes of requests to send before DEPTH are on their way */
    uint64_t partial; /* bytes of a reply that has not arrived whole */
    bool is_blocked;  /* the socket takes no more; epoll tells when it does */
};

static struct {
    char *bytes;
    size_t len;
    uint64_t request_bytes, reply_bytes;
} script;

static struct peer peers[PEERS_MAX];
static uint64_t answered;
static bool reads; /* replies, in place of having them dropped */

static void
read_script(void)
{
    ssize_t got;
    char *room = mmap(NULL, SCRIPT_BYTES_MAX + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        fail("mmap");
    }
    script.bytes = room + HUGE_PAGE_BYTES - (uintptr_t)room % HUGE_PAGE_BYTES;
    (void)madvise(script.bytes, SCRIPT_BYTES_MAX, MADV_HUGEPAGE);
    while ((got = read(STDIN_FILENO, script.bytes + script.len,
                       SCRIPT_BYTES_MAX - script.len)) > 0) {
        script.len += (size_t)got;
    }
    if (script.len == 0 || script.len % script.request_bytes != 0) {
        fprintf(stderr, "greedy: needs whole requests on stdin, up to 64 MB\n");
        exit(1);
    }
}

/* Bytes that the socket took, of len that are due; errno as send(2) has it. */
static ssize_t
send_piece(struct peer *p, size_t len)
{
    if (script.request_bytes < SPLICE_BYTES) {
        return send(p->fd, script.bytes + p->at, len, MSG_NOSIGNAL);
    }
    if (p->in_pipe == 0) {
        struct iovec piece = {script.bytes + p->at, len};
        ssize_t put = vmsplice(p->pipe[1], &piece, 1, SPLICE_F_NONBLOCK);
        if (put <= 0) {
            return put;
        }
        p->in_pipe = (size_t)put;
    }
    ssize_t sent = splice(p->pipe[0], NULL, p->fd, NULL, p->in_pipe, SPLICE_F_NONBLOCK);
    p->in_pipe -= sent > 0 ? (size_t)sent : 0;
    return sent;
}

static void
pump(struct peer *p)
{
    while (p->owed > 0) {
        size_t len = PIECE_BYTES;
        len = p->owed < len ? p->owed : len;
        len = script.len - p->at < len ? script.len - p->at : len;
        ssize_t sent = send_piece(p, len);
        if (sent <= 0) {
            if (sent == 0 || errno != EAGAIN) {
                fail("send");
            }
            break;
        }
        p->owed -= (uint64_t)sent;
        p->at = (p->at + (size_t)sent) % script.len;
    }
}

static void
watch(int ep, struct peer *p, int op)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    p->is_blocked = p->owed > 0;
    if (p->is_blocked) {
        ev.events |= EPOLLOUT;
    }
    if (epoll_ctl(ep, op, p->fd, &ev) != 0) {
        fail("epoll_ctl");
    }
}

static void
discard(struct peer *p)
{
    static char nowhere[READ_BYTES];
    ssize_t got = reads ? recv(p->fd, nowhere, READ_BYTES, 0)
                        : recv(p->fd, nowhere, PIECE_BYTES, MSG_TRUNC);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN) {
            fail("recv");
        }
        return;
    }
    p->partial += (uint64_t)got;
    uint64_t whole = p->partial / script.reply_bytes;
    p->partial %= script.reply_bytes;
    p->owed += whole * script.request_bytes;
    answered += whole;
}

static void
serve_until(int ep, double end)
{
    struct epoll_event events[PEERS_MAX];
    while (now() < end) {
        int n = epoll_wait(ep, events, PEERS_MAX, WAIT_MS);
        for (int i = 0; i < n; i++) {
            struct peer *p = events[i].data.ptr;
            if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                discard(p);
            }
            pump(p);
            if (p->is_blocked != (p->owed > 0)) {
                watch(ep, p, EPOLL_CTL_MOD);
            }
        }
    }
}

int
main(int argc, char **argv)
{
    if (argc != 9 || atoi(argv[2]) < 1 || atoi(argv[2]) > PEERS_MAX) {
        fprintf(stderr,
                "usage: greedy PORT CONNECTIONS DEPTH WARMUP SECONDS REQUEST_BYTES "
                "REPLY_BYTES drop|read < requests\n");
        return 2;
    }
    int connections = atoi(argv[2]);
    script.request_bytes = strtoull(argv[6], NULL, 10);
    script.reply_bytes = strtoull(argv[7], NULL, 10);
    reads = strcmp(argv[8], "read") == 0;
    read_script();
    uint64_t requests = script.len / script.request_bytes;
    int ep = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < connections; i++) {
        uint64_t first = (uint64_t)i * requests / (uint64_t)connections;
        peers[i] = (struct peer){
            .fd = connect_to(atoi(argv[1])),
            .at = (size_t)(first * script.request_bytes),
            .owed = strtoull(argv[3], NULL, 10) * script.request_bytes,
        };
        if (fcntl(peers[i].fd, F_SETFL, O_NONBLOCK) != 0) {
            fail("fcntl");
        }
        if (script.request_bytes >= SPLICE_BYTES && pipe(peers[i].pipe) != 0) {
            fail("pipe");
        }
        watch(ep, &peers[i], EPOLL_CTL_ADD);
    }
    serve_until(ep, now() + atof(argv[4]));
    uint64_t before = answered;
    double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    double start = now();
    serve_until(ep, start + atof(argv[5]));
    double took = now() - start;
    printf("%ju %.6f %.4f\n", (uintmax_t)(answered - before), took,
           (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / took);
    serve_until(ep, start + took + 1);
    return 0;
}
