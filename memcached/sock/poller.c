/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "sock/poller.h"

bool
poller_open(struct poller *p)
{
    p->next = 0;
    p->count = 0;
    p->fd = epoll_create1(EPOLL_CLOEXEC);
    return p->fd >= 0;
}

void
poller_close(struct poller *p)
{
    if (p->fd >= 0) {
        close(p->fd);
        p->fd = -1;
    }
}

bool
poller_add(struct poller *p, struct poll_source *source, unsigned what)
{
    struct epoll_event event = {.events = what, .data.ptr = source};
    return epoll_ctl(p->fd, EPOLL_CTL_ADD, source->fd, &event) == 0;
}

void
poller_remove(struct poller *p, struct poll_source *source)
{
    int rc = epoll_ctl(p->fd, EPOLL_CTL_DEL, source->fd, NULL);
    must(rc == 0 || errno == ENOENT);
    for (int i = p->next; i < p->count; i++) {
        if (p->batch[i].data.ptr == source) {
            p->batch[i].data.ptr = NULL;
        }
    }
}
