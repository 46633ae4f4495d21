/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 *
 * Waits for descriptors: an epoll of its own for each thread that serves sockets. What libevent
 * adds to one event of a client (lists, flags, a second table) costs as much as half a request, and
 * it keeps its epoll descriptor to itself.
 *
 *     poller_wait:  epoll_wait -> batch of events -> source->on_ready, one after the other
 *
 * The owner's thread; poller_open and poller_close any one.
 */
#pragma once

#include <errno.h>
#include <sys/epoll.h>

#include "base/must.h"
#include "sock/sys.h"

#define POLLER_BATCH 64 /* events taken from the kernel at once */

#define POLLER_READ EPOLLIN
#define POLLER_WRITE EPOLLOUT
#define POLLER_HANGUP EPOLLRDHUP /* the peer sends no more */
#define POLLER_EDGE EPOLLET      /* reported once for each change */

struct poll_source;

/* ready: POLLER_READ, _WRITE, _HANGUP; an error or a reset is both readable and writable. */
typedef void poll_ready(struct poll_source *source, unsigned ready);

/* A descriptor that is waited for: a part of its owner. */
struct poll_source {
    int fd;
    poll_ready *on_ready;
};

struct poller {
    int fd;          /* the epoll descriptor */
    int next, count; /* of the batch: not reported yet */
    bool is_broken;
    struct epoll_event batch[POLLER_BATCH];
};

/* False: no descriptor. */
must_check bool poller_open(struct poller *p);
void poller_close(struct poller *p);

/* What is ready already is reported, too. False: no memory. */
must_check bool poller_add(struct poller *p, struct poll_source *source, unsigned what);
/* Nothing of it is reported from here on, and its descriptor may be closed. It need not have been
 * added. */
void poller_remove(struct poller *p, struct poll_source *source);

static inline void
poller_report(const struct epoll_event *event)
{
    struct poll_source *source = event->data.ptr;
    unsigned ready = event->events;
    if (unlikely(source == NULL)) {
        return; /* it was removed after it had become ready */
    }
    if (unlikely(ready & (EPOLLERR | EPOLLHUP))) {
        ready |= POLLER_READ | POLLER_WRITE;
    }
    source->on_ready(source, ready);
}

/* Reports a batch of what is ready; sleeps until there is something when may_sleep. A part of the
 * owner's loop. */
static inline void
poller_wait(struct poller *p, bool may_sleep)
{
    if (p->next == p->count) {
        int n = sys_epoll_wait(p->fd, p->batch, POLLER_BATCH, may_sleep ? -1 : 0);
        must(n >= 0 || errno == EINTR);
        p->next = 0;
        p->count = n > 0 ? n : 0;
    }
    p->is_broken = false;
    while (p->next < p->count && !p->is_broken) {
        poller_report(&p->batch[p->next++]);
    }
}

/* In a callback: nothing else was ready. */
static inline bool
poller_had_one(const struct poller *p)
{
    return p->count == 1;
}
/* In a callback: what is left of the batch is reported by the next wait, which does not sleep. */
static inline void
poller_break(struct poller *p)
{
    p->is_broken = true;
}
