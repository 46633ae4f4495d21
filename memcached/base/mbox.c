/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "base/mbox.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool
mbox_init(struct mbox *m)
{
    atomic_init(&m->newest, NULL);
    m->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return m->fd >= 0;
}

void
mbox_fini(struct mbox *m)
{
    must(atomic_load(&m->newest) == NULL);
    close(m->fd);
}

void
mbox_wake(struct mbox *m)
{
    uint64_t one = 1;
    while (write(m->fd, &one, sizeof one) < 0) {
        if (errno == EAGAIN) {
            return; /* the counter is full: it is readable */
        }
        must(errno == EINTR);
    }
}

void
mbox_push(struct mbox *m, struct mbox_message *message)
{
    struct mbox_message *newest = atomic_load_explicit(&m->newest, memory_order_relaxed);
    do {
        message->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(
        &m->newest, &newest, message, memory_order_release, memory_order_relaxed));
    if (newest == NULL) {
        mbox_wake(m);
    }
}

void
mbox_clear(struct mbox *m)
{
    uint64_t wakeups;
    if (read(m->fd, &wakeups, sizeof wakeups) < 0) {
        must(errno == EAGAIN || errno == EINTR);
    }
}

struct mbox_message *
mbox_take(struct mbox *m)
{
    struct mbox_message *newest =
        atomic_exchange_explicit(&m->newest, NULL, memory_order_acquire);
    struct mbox_message *oldest = NULL;
    while (newest != NULL) {
        struct mbox_message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}
