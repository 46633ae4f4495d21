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

/* Level-triggered writability is asked for only while output waits, or a handshake. */
static bool
watch(struct lset *s, struct lconn *c, bool for_send)
{
    if (c->is_watched && c->is_watched_for_send == for_send) {
        return true;
    }
    bool is_up = c->state == LCONN_UP;
    struct epoll_event ev = {
        .events = (is_up || !for_send ? EPOLLIN : 0U) | (for_send ? EPOLLOUT : 0U),
        .data.ptr = c,
    };
    int op = c->is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    c->is_watched = true;
    c->is_watched_for_send = for_send;
    return epoll_ctl(s->epoll_fd, op, c->link.fd, &ev) == 0;
}

static struct link_conf
link_conf_of(const struct lset *s, const struct lconn *c)
{
    return (struct link_conf){c->target, s->conf.tls, s->conf.with_nodelay};
}

/* Connected: the first request, when there is one, is sent at once, nothing may overtake it. */
static bool
greet(struct lset *s, struct lconn *c)
{
    size_t sent;
    c->state = LCONN_UP;
    if (!watch(s, c, false)) {
        return false;
    }
    lconn_greet(c);
    return c->count == 0 || lset_flush(s, c, clock_now(), &sent);
}

static int
ms_until(nsec_t when)
{
    nsec_t now = clock_now();
    return now < when ? (int)((when - now) / NSEC_PER_MSEC) + 1 : 0;
}

static bool
connect_and_wait(struct lset *s, struct lconn *c, const char **why)
{
    struct link_conf conf = link_conf_of(s, c);
    nsec_t give_up = clock_now() + s->conf.timeout;
    enum link_io io;
    while ((io = link_open(&c->link, &conf, why)) == LINK_AGAIN &&
           clock_now() < give_up) {
        nanosleep(&(struct timespec){0, CONNECT_PAUSE_NS}, NULL);
    }
    while (io == LINK_OK && (io = link_go_on(&c->link, &conf, why)) == LINK_AGAIN) {
        struct pollfd p = {c->link.fd, c->link.wants_write ? POLLOUT : POLLIN, 0};
        int rc = poll(&p, 1, ms_until(give_up));
        if (rc < 0 && errno != EINTR) {
            *why = strerror(errno);
            return false;
        }
        if (rc == 0 && clock_now() >= give_up) {
            *why = "timed out";
            return false;
        }
        io = LINK_OK;
    }
    if (io == LINK_OK && !greet(s, c)) {
        *why = strerror(errno);
        return false;
    }
    return io == LINK_OK;
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
    size_t all = (size_t)conf->targets_len * conf->per_target;
    s->conns = calloc(all, sizeof *s->conns);
    s->more = calloc(all, sizeof(struct lconn *));
    s->more_before = calloc(all, sizeof(struct lconn *));
    s->more_len = s->more_before_len = s->events_len = 0;
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    /* Edge-triggered: setting the timer anew clears it, so it is never read. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (s->conns == NULL || s->more == NULL || s->more_before == NULL ||
        s->epoll_fd == -1 || s->timer_fd == -1 ||
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
    free(s->more);
    free(s->more_before);
    s->conns = NULL;
    s->more = s->more_before = NULL;
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
    int n = epoll_wait(s->epoll_fd, s->events, LSET_EVENTS_MAX,
                       s->more_len > 0 ? 0 : timeout_ms);
    must(n >= 0 || errno == EINTR);
    s->events_len = n > 0 ? (unsigned)n : 0;
    if (unlikely(s->more_len > 0)) {
        struct lconn **more = s->more;
        s->more = s->more_before;
        s->more_before = more;
    }
    s->more_before_len = s->more_len;
    s->more_len = 0;
    return s->events_len + s->more_before_len;
}

struct lconn *
lset_event(struct lset *s, unsigned i, unsigned *can)
{
    if (unlikely(i >= s->events_len)) {
        must(i - s->events_len < s->more_before_len);
        struct lconn *c = s->more_before[i - s->events_len];
        *can = LSET_CAN_RECEIVE;
        c->is_in_more = false;
        return c;
    }
    uint32_t events = s->events[i].events;
    struct lconn *c = s->events[i].data.ptr;
    *can = ((events & EPOLLOUT) != 0 ? LSET_CAN_SEND : 0) |
           ((events & ~(uint32_t)EPOLLOUT) != 0 ? LSET_CAN_RECEIVE : 0);
    /* TLS may have had to read before it could write. */
    if (c != NULL && c->link.tls != NULL) {
        *can |= LSET_CAN_SEND;
    }
    return c;
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

static void
ask_again(struct lset *s, struct lconn *c)
{
    if (!c->is_in_more) {
        must(s->more_len < s->count);
        c->is_in_more = true;
        s->more[s->more_len++] = c;
    }
}

enum lset_input
lset_receive(struct lset *s, struct lconn *c, struct lset_bytes *in)
{
    bool has_more;
    in->p = s->input;
    switch (link_receive(&c->link, s->input, sizeof s->input, &in->len, &has_more)) {
    case LINK_OK:
        if (unlikely(has_more)) {
            ask_again(s, c);
        }
        return LSET_DATA;
    case LINK_AGAIN:
        return LSET_NOTHING;
    default:
        return LSET_LOST;
    }
}

bool
lset_flush(struct lset *s, struct lconn *c, nsec_t now, size_t *sent)
{
    const char *bytes;
    size_t len, n;
    enum link_io io = LINK_OK;
    *sent = 0;
    lconn_begin_flush(c);
    while (io == LINK_OK && (len = lconn_output(c, &bytes)) > 0) {
        io = link_send(&c->link, bytes, len, &n);
        lconn_sent(c, n, now);
        *sent += n;
    }
    lconn_end_flush(c, io == LINK_AGAIN ? now : 0);
    return io != LINK_LOST && watch(s, c, io == LINK_AGAIN && c->link.wants_write);
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
    struct link_conf conf = link_conf_of(s, c);
    enum link_io io = LINK_OK;
    if (c->state == LCONN_DOWN) {
        io = link_open(&c->link, &conf, &why);
        c->state = LCONN_CONNECTING;
        c->retry_at = now + s->conf.timeout;
    }
    io = io == LINK_OK ? link_go_on(&c->link, &conf, &why) : LINK_LOST;
    bool is_good = io == LINK_OK ? greet(s, c)
                                 : io == LINK_AGAIN && watch(s, c, c->link.wants_write);
    if (!is_good) {
        lset_lose(s, c, now);
    }
    return is_good;
}
