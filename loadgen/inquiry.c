/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/inquiry.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPLY_MAX 65536
#define ANSWER_MS 1000 /* a server that takes longer to connect or to answer is lost */
#define REQUEST "stats\r\n"

struct inquiry_conn {
    int fd; /* below 0: lost */
    bool is_asked;
    nsec_t asked;
    size_t len;
    char reply[REPLY_MAX];
};

static void
lose(struct inquiry *q, unsigned i, const char *why)
{
    struct inquiry_conn *c = &q->conns[i];
    fprintf(q->err, "mcload: no more stats of %s: %s\n", q->targets[i].name, why);
    close(c->fd);
    c->fd = -1;
    c->is_asked = false;
}

static bool
connect_in_time(int fd, const struct target *t)
{
    int error = 0;
    socklen_t len = sizeof error;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (connect(fd, (const struct sockaddr *)&t->addr, t->addr_len) == 0) {
        return true;
    }
    if (errno != EINPROGRESS) {
        return false;
    }
    if (poll(&p, 1, ANSWER_MS) != 1) {
        errno = ETIMEDOUT;
        return false;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0) {
        errno = error;
    }
    return errno == 0;
}

static enum exit_status
connect_all(struct inquiry *q, unsigned len)
{
    q->conns = calloc(len, sizeof *q->conns);
    if (q->conns == NULL) {
        fputs("mcload: out of memory\n", q->err);
        return EXIT_UNREACHABLE;
    }
    for (unsigned i = 0; i < len; i++, q->len++) {
        const struct target *t = &q->targets[i];
        q->conns[i].fd =
            socket(t->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (q->conns[i].fd < 0 || !connect_in_time(q->conns[i].fd, t)) {
            fprintf(q->err, "mcload: cannot connect to %s for its stats: %s\n", t->name,
                    strerror(errno));
            q->len = i + 1;
            return EXIT_UNREACHABLE;
        }
    }
    return EXIT_VALID;
}

enum exit_status
inquiry_open(struct inquiry *q, const struct options *o, const struct target *targets,
             FILE *err)
{
    *q = (struct inquiry){.targets = targets, .err = err};
    q->length = (nsec_t)(o->server_stats_s * (double)NSEC_PER_SEC);
    for (unsigned i = 0; q->length > 0 && i < o->servers_len; i++) {
        enum transport transport = targets[i].transport;
        if (transport != TRANSPORT_TCP && transport != TRANSPORT_UNIX) {
            fputs("mcload: --server-stats asks over TCP and UNIX sockets only\n", err);
            return EXIT_USAGE;
        }
    }
    return q->length > 0 ? connect_all(q, o->servers_len) : EXIT_VALID;
}

void
inquiry_fini(struct inquiry *q)
{
    for (unsigned i = 0; i < q->len; i++) {
        if (q->conns[i].fd >= 0) {
            close(q->conns[i].fd);
        }
    }
    free(q->conns);
    server_stats_destroy(&q->stats);
    *q = (struct inquiry){.conns = NULL};
}

static void
ask(struct inquiry *q, nsec_t now)
{
    for (unsigned i = 0; i < q->len; i++) {
        struct inquiry_conn *c = &q->conns[i];
        if (c->fd < 0 || c->is_asked) {
            continue;
        }
        size_t len = sizeof REQUEST - 1;
        if (send(c->fd, REQUEST, len, MSG_NOSIGNAL) != (ssize_t)len) {
            lose(q, i, "the connection is lost");
            continue;
        }
        c->is_asked = true;
        c->asked = now;
        c->len = 0;
    }
}

static void
keep(struct inquiry *q, unsigned i)
{
    struct inquiry_conn *c = &q->conns[i];
    struct server_sample sample = {
        .server = i,
        .at_s = c->asked > q->start ? (double)(c->asked - q->start) / 1e9 : 0,
    };
    if (!server_sample_parse(&sample, c->reply, c->len)) {
        return;
    }
    c->is_asked = false;
    if (!server_stats_add(q->stats, &sample)) {
        lose(q, i, "out of memory");
    }
}

/* Whether replies are still on the way. */
static bool
take(struct inquiry *q, nsec_t now)
{
    bool is_waiting = false;
    for (unsigned i = 0; i < q->len; i++) {
        struct inquiry_conn *c = &q->conns[i];
        ssize_t n = 1;
        while (c->is_asked && n > 0) {
            n = recv(c->fd, c->reply + c->len, sizeof c->reply - c->len, 0);
            c->len += n > 0 ? (size_t)n : 0;
            if (n > 0) {
                keep(q, i);
            }
        }
        if (c->is_asked && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
            lose(q, i,
                 c->len == sizeof c->reply ? "the reply is too long"
                                           : "the connection is lost");
        } else if (c->is_asked && now > c->asked + ANSWER_MS * NSEC_PER_MSEC) {
            lose(q, i, "no answer");
        }
        is_waiting = is_waiting || c->is_asked;
    }
    return is_waiting;
}

bool
inquiry_start(struct inquiry *q, nsec_t start, nsec_t end)
{
    if (q->conns == NULL) {
        return true;
    }
    server_stats_destroy(&q->stats);
    q->stats = server_stats_create(q->len);
    q->start = q->next = start;
    q->end = end;
    return q->stats != NULL;
}

nsec_t
inquiry_next(const struct inquiry *q)
{
    return q->conns != NULL ? q->next : INQUIRY_NEVER;
}

void
inquiry_look(struct inquiry *q, nsec_t now)
{
    if (q->conns == NULL) {
        return;
    }
    take(q, now);
    if (now >= q->next && now < q->end) {
        ask(q, now);
        while (q->next <= now) {
            q->next += q->length;
        }
    }
}

static void
await(struct inquiry *q)
{
    while (take(q, clock_now())) {
        struct pollfd p = {.fd = -1, .events = POLLIN};
        for (unsigned i = 0; i < q->len; i++) {
            p.fd = q->conns[i].is_asked ? q->conns[i].fd : p.fd;
        }
        int rc = poll(&p, 1, ANSWER_MS / 10);
        must(rc >= 0 || errno == EINTR || errno == ENOMEM);
    }
}

void
inquiry_end(struct inquiry *q)
{
    await(q); /* one asked just before */
    ask(q, clock_now());
    await(q);
}

struct server_stats *
inquiry_take(struct inquiry *q)
{
    struct server_stats *stats = q->stats;
    q->stats = NULL;
    return stats;
}
