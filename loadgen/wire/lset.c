/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "loadgen/wire/lset.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_PAUSE_NS 1000000 /* while the listener's queue is full */

static bool
add(struct lset *s, struct lconn *c)
{
    struct epoll_event ev = {
        .events = c->state == LCONN_UP ? EPOLLIN : EPOLLOUT,
        .data.ptr = c,
    };
    c->wants_write = c->state != LCONN_UP;
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) == 0;
}

/* Level-triggered writability is asked for only while output waits. */
static bool
want_write(struct lset *s, struct lconn *c, bool wants)
{
    if (c->wants_write == wants) {
        return true;
    }
    struct epoll_event ev = {
        .events = EPOLLIN | (wants ? EPOLLOUT : 0),
        .data.ptr = c,
    };
    c->wants_write = wants;
    return epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) == 0;
}

/* The first request, when there is one, is sent at once: nothing may overtake it. */
static bool
greet(struct lset *s, struct lconn *c)
{
    size_t sent;
    lconn_greet(c);
    return c->count == 0 || lset_flush(s, c, clock_now(), &sent) != LCONN_IO_LOST;
}

static bool
connect_and_wait(struct lset *s, struct lconn *c, const char **why)
{
    nsec_t give_up = clock_now() + s->conf.timeout;
    enum lconn_io io;
    while ((io = lconn_connect(c, s->conf.with_nodelay, why)) == LCONN_IO_AGAIN &&
           clock_now() < give_up) {
        nanosleep(&(struct timespec){0, CONNECT_PAUSE_NS}, NULL);
    }
    if (io != LCONN_IO_OK) {
        return false;
    }
    if (c->state == LCONN_CONNECTING) {
        struct pollfd p = {c->fd, POLLOUT, 0};
        int rc;
        do {
            rc = poll(&p, 1, (int)(s->conf.timeout / NSEC_PER_MSEC));
        } while (rc < 0 && errno == EINTR);
        if (rc <= 0) {
            *why = rc == 0 ? "timed out" : strerror(errno);
            return false;
        }
        if (!lconn_connected(c, why)) {
            return false;
        }
    }
    if (!add(s, c) || !greet(s, c)) {
        *why = strerror(errno);
        return false;
    }
    return true;
}

static const char *
open_conn(struct lset *s, const struct target *t, unsigned server, char *err,
          size_t err_len)
{
    const char *why;
    struct lconn_conf conf = {s->conf.codec,    t,           server, s->conf.capacity,
                              s->conf.workload, s->conf.auth};
    struct lconn *c = &s->conns[s->count];
    if (!lconn_init(c, &conf)) {
        snprintf(err, err_len, "out of memory for connection buffers");
        return err;
    }
    s->count++;
    if (!connect_and_wait(s, c, &why)) {
        snprintf(err, err_len, "cannot connect to %s: %s", t->name, why);
        return err;
    }
    return NULL;
}

const char *
lset_open(struct lset *s, const struct lset_conf *conf, char *err, size_t err_len)
{
    s->conf = *conf;
    s->armed_at = 0;
    s->count = 0;
    s->conns = calloc((size_t)conf->targets_len * conf->per_target, sizeof *s->conns);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    /* Edge-triggered: setting the timer anew clears it, so it is never read. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (s->conns == NULL || s->epoll_fd == -1 || s->timer_fd == -1 ||
        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->timer_fd, &ev) != 0) {
        snprintf(err, err_len, "cannot set up connections: %s", strerror(errno));
        return err;
    }
    for (unsigned i = 0; i < conf->per_target; i++) {
        for (unsigned t = 0; t < conf->targets_len; t++) {
            const char *failed = open_conn(s, &conf->targets[t], t, err, err_len);
            if (failed != NULL) {
                return failed;
            }
        }
    }
    return NULL;
}

const char *
lset_renew(struct lset *s, bool all, char *err, size_t err_len)
{
    for (unsigned i = 0; i < s->count; i++) {
        struct lconn *c = &s->conns[i];
        const char *why;
        if (!all && c->state == LCONN_UP && c->count == 0 && c->todo_count == 0) {
            continue;
        }
        lconn_down(c);
        if (!connect_and_wait(s, c, &why)) {
            snprintf(err, err_len, "cannot connect to %s: %s", c->target->name, why);
            return err;
        }
    }
    return NULL;
}

void
lset_close(struct lset *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        lconn_fini(&s->conns[i]);
    }
    free(s->conns);
    s->conns = NULL;
    s->count = 0;
    if (s->epoll_fd != -1) {
        close(s->epoll_fd);
    }
    if (s->timer_fd != -1) {
        close(s->timer_fd);
    }
    s->epoll_fd = s->timer_fd = -1;
}

unsigned
lset_wait(struct lset *s, int timeout_ms)
{
    int n = epoll_wait(s->epoll_fd, s->events, LSET_EVENTS_MAX, timeout_ms);
    must(n >= 0 || errno == EINTR);
    return n > 0 ? (unsigned)n : 0;
}

struct lconn *
lset_event(struct lset *s, unsigned i, uint32_t *events)
{
    *events = s->events[i].events;
    return s->events[i].data.ptr;
}

void
lset_wake_at(struct lset *s, nsec_t when)
{
    if (s->armed_at == when) {
        return;
    }
    struct itimerspec its = {
        .it_value = {(time_t)(when / NSEC_PER_SEC), (long)(when % NSEC_PER_SEC)},
    };
    must(timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &its, NULL) == 0);
    s->armed_at = when;
}

enum lset_input
lset_receive(struct lset *s, struct lconn *c, size_t *len)
{
    ssize_t n;
    do {
        n = recv(c->fd, s->input, sizeof s->input, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        *len = (size_t)n;
        return LSET_DATA;
    }
    *len = 0;
    return n < 0 && errno == EAGAIN ? LSET_NOTHING : LSET_LOST;
}

enum lconn_io
lset_flush(struct lset *s, struct lconn *c, nsec_t now, size_t *sent)
{
    enum lconn_io io = lconn_flush(c, now, sent);
    if (io != LCONN_IO_LOST && !want_write(s, c, io == LCONN_IO_AGAIN)) {
        return LCONN_IO_LOST;
    }
    return io;
}

void
lset_lose(struct lset *s, struct lconn *c, nsec_t now)
{
    (void)s; /* closing the socket takes it out of the epoll set */
    lconn_down(c);
    c->backoff = c->backoff == 0 ? LSET_BACKOFF_FIRST : c->backoff * 2;
    c->backoff = c->backoff > LSET_BACKOFF_LAST ? LSET_BACKOFF_LAST : c->backoff;
    c->retry_at = now + c->backoff;
}

bool
lset_reconnect(struct lset *s, struct lconn *c, nsec_t now)
{
    const char *why;
    bool is_good;
    if (c->state == LCONN_DOWN) {
        is_good =
            lconn_connect(c, s->conf.with_nodelay, &why) == LCONN_IO_OK && add(s, c);
        c->retry_at = now + s->conf.timeout;
    } else {
        is_good = lconn_connected(c, &why) && want_write(s, c, false);
    }
    if (is_good && c->state == LCONN_UP) {
        is_good = greet(s, c);
    }
    if (!is_good) {
        lset_lose(s, c, now);
    }
    return is_good;
}
