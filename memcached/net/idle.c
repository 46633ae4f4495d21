/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 the memcached-qos authors
 */
#include "net/idle.h"

#include <stddef.h>
#include <unistd.h>

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
    return c->is_tcp && c->closing == CLOSE_NONE && !work_is_queued(&c->pump.work) &&
           now > last && now - last > seconds;
}

static void
on_timer(struct poll_source *timer, unsigned ready)
{
    (void)ready;
    struct worker *w =
        (struct worker *)(void *)((char *)timer - offsetof(struct worker, idle.timer));
    if (!timer_take(timer->fd)) {
        return;
    }
    core_wake(&w->core);
    conn_tls_expire(w);
    struct idle *idle = &w->idle;
    if (idle->next == NULL && w->shared->idle_seconds != 0) {
        idle->next = w->conns;
    }
    for (unsigned i = 0; i < PIECE && idle->next != NULL; i++) {
        struct conn *c = idle->next;
        idle->next = c->next;
        if (is_idle(c, w->core.env.now, w->shared->idle_seconds)) {
            conn_close(c, CLOSE_IDLE);
            ctr_add(&w->ctr.idle_kicks, 1);
        }
    }
    timer_set(timer->fd,
              clock_now() + (idle->next != NULL ? PIECE_PAUSE_NS : WALK_PAUSE_NS));
}

bool
idle_start(struct worker *w)
{
    struct idle *idle = &w->idle;
    *idle = (struct idle){.timer.fd = -1};
    if (w->shared->idle_seconds == 0 && w->shared->tls == NULL) {
        return true;
    }
    idle->timer = (struct poll_source){.fd = timer_open(), .on_ready = on_timer};
    if (idle->timer.fd < 0 || !poller_add(&w->poller, &idle->timer, POLLER_READ)) {
        return false;
    }
    timer_set(idle->timer.fd, clock_now() + WALK_PAUSE_NS);
    return true;
}

void
idle_stop(struct worker *w)
{
    if (w->idle.timer.fd >= 0) {
        close(w->idle.timer.fd);
        w->idle.timer.fd = -1;
    }
}

void
idle_forget(struct worker *w, const struct conn *c)
{
    if (w->idle.next == c) {
        w->idle.next = c->next;
    }
}
