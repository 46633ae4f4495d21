/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/idle.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/owner_of.h"
#include "base/timer.h"
#include "net/conn_tls.h"
#include "net/worker.h"

#define PIECE 256                        /* connections looked at in a row */
#define PIECE_PAUSE_NS NSEC_PER_MSEC     /* between two pieces */
#define WALK_PAUSE_NS (1 * NSEC_PER_SEC) /* between two walks */

static bool
is_idle(const struct conn *c, uint32_t now, uint32_t seconds)
{
    uint32_t last = atomic_load_explicit(&c->entry.last_cmd, memory_order_relaxed);
    bool waits_for_us = work_is_queued(&c->pump.work) || c->is_parked;
    return c->is_tcp && c->closing == CLOSE_NONE && !waits_for_us && now > last &&
           now - last > seconds;
}

/* A client that takes its reply is not idle, however slowly it reads. The socket tells of room only when
 * much was read; bytes are acknowledged before. */
static bool
has_read(struct conn *c, uint32_t now)
{
    struct tcp_info info = {.tcpi_bytes_acked = 0};
    socklen_t len = sizeof info;
    if (c->pump.out.bytes == 0 ||
        getsockopt(c->source.fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        (uint32_t)info.tcpi_bytes_acked == c->entry.acked) {
        return false;
    }
    c->entry.acked = (uint32_t)info.tcpi_bytes_acked;
    atomic_store_explicit(&c->entry.last_cmd, now, memory_order_relaxed);
    return true;
}

static void
on_timer(struct poll_source *timer, unsigned ready)
{
    (void)ready;
    struct worker *w = OWNER_OF(timer, struct worker, idle);
    if (!timer_take(timer->fd)) {
        return;
    }
    core_wake(&w->core);
    conn_tls_expire(w);
    struct conn **next = &w->conns.walks[WALK_IDLE];
    if (*next == NULL && w->shared->idle_seconds != 0) {
        *next = w->conns.first;
    }
    for (unsigned i = 0; i < PIECE && *next != NULL; i++) {
        struct conn *c = *next;
        *next = c->next;
        uint32_t now = w->core.env.now;
        if (is_idle(c, now, w->shared->idle_seconds) && !has_read(c, now) &&
            !conn_has_unread(c)) {
            conn_close(c, CLOSE_IDLE);
            ctr_add(&w->ctr.idle_kicks, 1);
        }
    }
    timer_set(timer->fd, clock_now() + (*next != NULL ? PIECE_PAUSE_NS : WALK_PAUSE_NS));
}

bool
idle_start(struct worker *w)
{
    if (w->shared->idle_seconds == 0 && w->shared->tls == NULL) {
        return true;
    }
    w->idle = (struct poll_source){.fd = timer_open(), .on_ready = on_timer};
    if (w->idle.fd < 0 || !poller_add(&w->poller, &w->idle, POLLER_READ)) {
        return false;
    }
    timer_set(w->idle.fd, clock_now() + WALK_PAUSE_NS);
    return true;
}

void
idle_stop(struct worker *w)
{
    if (w->idle.fd >= 0) {
        close(w->idle.fd);
        w->idle.fd = -1;
    }
}
