/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * An epoll set with a timer finer than epoll's milliseconds; one recv an event.
 */
#include "loadgen/wire/engine.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/timer.h"
#include "loadgen/wire/lset.h"

#define EVENTS_MAX 256
#define INPUT_BYTES 131072

struct waiter {
    int epoll_fd, timer_fd;
    nsec_t armed_at; /* what the timer is set to, 0: nothing */
    struct epoll_event events[EVENTS_MAX];
    unsigned events_len;
    /* Connections with input that no event tells of: since the last wait, and before it. */
    struct lconn **more, **more_before;
    unsigned more_len, more_before_len;
    char input[INPUT_BYTES]; /* of the connection being read */
};

static const char *
epoll_open(struct lset *s)
{
    struct waiter *w = s->waiter = alloc_zeroed(1, sizeof *w);
    w->more = alloc_zeroed(s->room, sizeof(struct lconn *));
    w->more_before = alloc_zeroed(s->room, sizeof(struct lconn *));
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    w->timer_fd = timer_open();
    /* Edge-triggered: setting the timer anew clears it, so it is never read. */
    struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    if (w->epoll_fd == -1 || w->timer_fd == -1 ||
        epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, w->timer_fd, &ev) != 0) {
        return strerror(errno);
    }
    return NULL;
}

static void
epoll_close(struct lset *s)
{
    struct waiter *w = s->waiter;
    if (w == NULL) {
        return;
    }
    if (w->epoll_fd != -1) {
        close(w->epoll_fd);
    }
    if (w->timer_fd != -1) {
        close(w->timer_fd);
    }
    free(w->more);
    free(w->more_before);
    free(w);
    s->waiter = NULL;
}

/* Level-triggered writability is asked for only while output waits, or a handshake. */
static bool
epoll_watch(struct lset *s, struct lconn *c, bool for_send)
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
    return epoll_ctl(s->waiter->epoll_fd, op, c->link.fd, &ev) == 0;
}

/* Closing the socket takes it out of the set. */
static void
epoll_forget(struct lset *s, struct lconn *c)
{
    (void)s;
    c->is_watched = c->is_watched_for_send = false;
}

static unsigned
epoll_await(struct lset *s, int timeout_ms)
{
    struct waiter *w = s->waiter;
    int n =
        epoll_wait(w->epoll_fd, w->events, EVENTS_MAX, w->more_len > 0 ? 0 : timeout_ms);
    must(n >= 0 || errno == EINTR);
    w->events_len = n > 0 ? (unsigned)n : 0;
    if (unlikely(w->more_len > 0)) {
        struct lconn **more = w->more;
        w->more = w->more_before;
        w->more_before = more;
    }
    w->more_before_len = w->more_len;
    w->more_len = 0;
    return w->events_len + w->more_before_len;
}

static struct lconn *
epoll_event_of(struct lset *s, unsigned i, unsigned *can)
{
    struct waiter *w = s->waiter;
    if (unlikely(i >= w->events_len)) {
        must(i - w->events_len < w->more_before_len);
        struct lconn *c = w->more_before[i - w->events_len];
        *can = LSET_CAN_RECEIVE;
        c->is_in_more = false;
        return c;
    }
    uint32_t events = w->events[i].events;
    struct lconn *c = w->events[i].data.ptr;
    *can = ((events & EPOLLOUT) != 0 ? LSET_CAN_SEND : 0) |
           ((events & ~(uint32_t)EPOLLOUT) != 0 ? LSET_CAN_RECEIVE : 0);
    /* TLS may have had to read before it could write. */
    if (c != NULL && c->link.tls != NULL) {
        *can |= LSET_CAN_SEND;
    }
    return c;
}

static void
epoll_wake_at(struct lset *s, nsec_t when)
{
    struct waiter *w = s->waiter;
    if (w->armed_at == when) {
        return;
    }
    timer_set(w->timer_fd, when);
    w->armed_at = when;
}

static void
ask_again(struct lset *s, struct lconn *c)
{
    struct waiter *w = s->waiter;
    if (!c->is_in_more) {
        must(w->more_len < s->count);
        c->is_in_more = true;
        w->more[w->more_len++] = c;
    }
}

static enum lset_input
receive_stamped(struct lset *s, struct lconn *c, struct lset_bytes *in)
{
    struct waiter *w = s->waiter;
    stamps_collect(c->stamps, c->link.fd);
    long n = stamps_receive(c->stamps, c->link.fd, w->input, sizeof w->input);
    if (n <= 0) {
        return n < 0 && errno == EAGAIN ? LSET_NOTHING : LSET_LOST;
    }
    *in = (struct lset_bytes){w->input, (size_t)n};
    return LSET_DATA;
}

static enum lset_input
epoll_receive(struct lset *s, struct lconn *c, struct lset_bytes *in)
{
    struct waiter *w = s->waiter;
    bool has_more;
    in->p = w->input;
    if (unlikely(c->stamps != NULL)) {
        return receive_stamped(s, c, in);
    }
    switch (link_receive(&c->link, w->input, sizeof w->input, &in->len, &has_more)) {
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

const struct engine engine_epoll = {
    .name = "epoll",
    .open = epoll_open,
    .close = epoll_close,
    .watch = epoll_watch,
    .forget = epoll_forget,
    .wait = epoll_await,
    .event = epoll_event_of,
    .wake_at = epoll_wake_at,
    .receive = epoll_receive,
    ENGINE_OF_SOCKETS,
};
