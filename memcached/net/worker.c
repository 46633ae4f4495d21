/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/worker.h"

#include "base/probe.h"
#include "sock/incoming.h"

void
worker_check_rx(struct worker *w, int fd)
{
    w->rx.reads_to_check = READS_PER_RX_CHECK;
    int cpu = w->shared->checks_rx ? incoming_cpu(fd) : -1;
    if (cpu >= 0) {
        ctr_add(&w->rx.checked, 1);
        ctr_add(&w->rx.local, cpu == sched_getcpu());
    }
}

void
worker_end_inline(struct worker *w, const struct turn *turn)
{
    if (unlikely(queue_end_inline(&w->core, turn))) {
        poller_break(&w->poller);
    }
}

void
worker_order(struct worker *w, enum worker_order order)
{
    atomic_fetch_or(&w->orders, order);
    mbox_wake(&w->mbox);
}

void
workers_order(struct worker *workers, unsigned count, enum worker_order order)
{
    for (unsigned i = 0; i < count; i++) {
        worker_order(&workers[i], order);
    }
}

bool
worker_ping(struct worker *w)
{
    if ((atomic_fetch_or(&w->orders, ORDER_PASS) & ORDER_PASS) != 0) {
        return false;
    }
    mbox_wake(&w->mbox);
    return true;
}

void
worker_expect(struct worker *w)
{
    atomic_fetch_add_explicit(&w->shared->loads[w->index], 1, memory_order_relaxed);
}

void
worker_forget(struct worker *w)
{
    atomic_fetch_sub_explicit(&w->shared->loads[w->index], 1, memory_order_relaxed);
}

void
worker_give(struct worker *w, struct handoff *handoff)
{
    PROBE(conn__dispatch, handoff->fd, w->index);
    mbox_push(&w->mbox, &handoff->message.message);
}
